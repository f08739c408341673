"""Lists, filtered and in pages."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import Query

from orchard_env.service.entry import Entry, Status
from orchard_env.service.faults import RequestInvalid

Labels = Annotated[
    list[str], Query(description="`NAME=VALUE`, or `NAME` for any value; may be repeated, and all must fit.")
]
Limit = Annotated[int, Query(ge=1, le=1000, description="Entries of a page at most.")]
Cursor = Annotated[
    str | None, Query(max_length=256, description="`next` of the page before; left out for the first.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A part of a list."""

    entries: tuple[Entry, ...]
    """Oldest first."""
    next_cursor: str | None
    """Where the next begins; None: there is none."""


def page(
    entries: Sequence[Entry],
    *,
    labels: Sequence[str],
    statuses: Sequence[str],
    limit: int,
    cursor: str | None,
) -> Page:
    """One page of those that fit. What is made or ends meanwhile shifts nothing: the cursor is an entry's
    place in time. Raises RequestInvalid."""
    known = {status.value for status in Status}
    for status in statuses:
        if status not in known:
            raise RequestInvalid(f"no sandbox has the status {status[:40]!r}", hint=", ".join(sorted(known)))
    after = _place(cursor) if cursor else None
    found = [
        entry
        for entry in sorted(entries, key=lambda entry: (entry.created, entry.id))
        if (after is None or (entry.created, entry.id) > after)
        and all(_fits(entry, label) for label in labels)
        and (not statuses or entry.status.value in statuses)
    ]
    more = len(found) > limit
    return Page(entries=tuple(found[:limit]), next_cursor=_cursor(found[limit - 1]) if more else None)


def _fits(entry: Entry, label: str) -> bool:
    name, equals, value = label.partition("=")
    found = entry.spec.labels.get(name)
    return found is not None and (not equals or found == value)


def _cursor(entry: Entry) -> str:
    return base64.urlsafe_b64encode(f"{entry.created!r} {entry.id}".encode()).decode()


def _place(cursor: str) -> tuple[float, str]:
    try:
        created, _, name = base64.urlsafe_b64decode(cursor).decode().partition(" ")
        return float(created), name
    except (binascii.Error, ValueError):
        raise RequestInvalid("cursor is none that this service gave", hint="begin without one") from None
