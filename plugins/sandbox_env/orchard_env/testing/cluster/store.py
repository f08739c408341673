"""Objects, their versions, and what changed."""

from __future__ import annotations

import time
import uuid
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import orjson

from orchard_env.kubernetes.resources import Manifest
from orchard_env.testing.cluster.selecting import Wanted

Key = tuple[str, str]
"""Namespace and name."""


@dataclass(slots=True, kw_only=True)
class Change:
    """One thing that happened."""

    version: int
    """After it."""
    plural: str
    """The kind of object."""
    type: str
    """ADDED, MODIFIED or DELETED."""
    before: Manifest | None
    """What the object was."""
    after: Manifest
    """What it is; of a deletion, what it was at last."""
    _line: bytes = b""

    @property
    def line(self) -> bytes:
        """As a watch tells it; written once for all watches."""
        if not self._line:
            self._line = told_line(self.type, self.after)
        return self._line

    def told_to(self, wanted: Wanted) -> bytes | None:
        """The line for a watch with this selection: an object that leaves it is told of as deleted."""
        was = self.before is not None and wanted.fits(self.before)
        is_now = self.type != "DELETED" and wanted.fits(self.after)
        if is_now:
            return self.line if was or self.type == "ADDED" else told_line("ADDED", self.after)
        return (self.line if self.type == "DELETED" else told_line("DELETED", self.after)) if was else None


@dataclass(slots=True)
class Store:
    """Every object is a dict that is never changed in place: a snapshot is a list of them."""

    history: int
    version: int = 1
    objects: dict[str, dict[Key, Manifest]] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    compacted: int = 0
    """Changes up to this version are forgotten."""
    told: list[Callable[[Change], None]] = field(default_factory=list)

    def all(self, plural: str) -> dict[Key, Manifest]:
        """Of one kind."""
        return self.objects.setdefault(plural, {})

    def put(self, plural: str, key: Key, manifest: Manifest) -> Manifest:
        """Create or replace; gives it with its new version."""
        before = self.all(plural).get(key)
        self.version += 1
        after = {**manifest, "metadata": {**manifest["metadata"], "resourceVersion": str(self.version)}}
        self.all(plural)[key] = after
        self._note(plural, "ADDED" if before is None else "MODIFIED", before, after)
        return after

    def add(self, plural: str, namespace: str, manifest: Manifest) -> Manifest:
        """A new object with all that a server gives it."""
        about = {
            **manifest["metadata"],
            "uid": str(uuid.uuid4()),
            "creationTimestamp": stamp(),
        }
        if namespace:
            about["namespace"] = namespace
        return self.put(plural, (namespace, about["name"]), {**manifest, "metadata": about})

    def drop(self, plural: str, key: Key) -> Manifest | None:
        """Remove; None when it was not there."""
        before = self.all(plural).pop(key, None)
        if before is None:
            return None
        self.version += 1
        last = {**before, "metadata": {**before["metadata"], "resourceVersion": str(self.version)}}
        self._note(plural, "DELETED", before, last)
        return last

    def since(self, plural: str, version: int) -> Iterator[Change]:
        """What happened to a kind after a version that is not compacted."""
        start = bisect_right(self.changes, version, key=lambda change: change.version)
        return (change for change in self.changes[start:] if change.plural == plural)

    def compact(self) -> None:
        """Forget what happened."""
        self.compacted = self.version
        self.changes.clear()

    def _note(self, plural: str, kind: str, before: Manifest | None, after: Manifest) -> None:
        change = Change(
            version=self.version,
            plural=plural,
            type=kind,
            before=before,
            after=after,
        )
        self.changes.append(change)
        if len(self.changes) > 2 * self.history:
            self.compacted = self.changes[-self.history - 1].version
            del self.changes[: -self.history]
        for told in self.told:
            told(change)


def stamp(at: float | None = None) -> str:
    """A time as the server writes it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


def told_line(kind: str, manifest: Manifest) -> bytes:
    """One line of a watch."""
    return orjson.dumps({"type": kind, "object": manifest}) + b"\n"
