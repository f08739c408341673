"""Token counts as Anthropic reports them: disjoint already."""

from __future__ import annotations

from orchard_core.types.model import Usage

_COUNTS = (
    ("input_tokens", "input"),
    ("cache_read_input_tokens", "cache_read"),
    ("cache_creation_input_tokens", "cache_write"),
    ("output_tokens", "output"),
)


def messages_usage(reported: object, earlier: Usage | None = None) -> Usage | None:
    """Counts of an answer's `usage`; None when there is none. A stream reports twice, the second time not
    everything: what it leaves out stays as `earlier` has it."""
    if not isinstance(reported, dict):
        return earlier
    counts = {ours: _count(reported.get(theirs)) for theirs, ours in _COUNTS}
    known = {name: count for name, count in counts.items() if count is not None}
    if not known:
        return earlier
    return (earlier or Usage()).model_copy(update=known)


def messages_report(usage: Usage) -> dict[str, int]:
    """The `usage` of an answer for given counts."""
    return {theirs: getattr(usage, ours) for theirs, ours in _COUNTS}


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
