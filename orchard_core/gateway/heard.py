"""A request's messages as a change to what the session heard before."""

from __future__ import annotations

from collections.abc import Sequence

from orchard_core.gateway.conversation import Head, Heard


def heard_of(sent: Sequence[str], roles: Sequence[str], heads: Sequence[Head]) -> Heard:
    """Compare all messages (JSON text, one role each) with those of earlier calls, by exact text.

    Chat completions, where time counts, skip over what is shared instead of reading it: `chat/request.py`.
    """
    shared = [(_shared(head.sent, sent), head) for head in heads]
    keep, base = max(shared, key=lambda entry: entry[0], default=(0, None))
    full = [head for count, head in shared if count == len(head.sent)]
    full.sort(key=lambda head: -len(head.sent))
    return Heard(base=base if keep else None, keep=keep, sent=sent, roles=roles[keep:], full=full)


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    limit = min(len(one), len(other))
    return next((at for at in range(limit) if one[at] != other[at]), limit)
