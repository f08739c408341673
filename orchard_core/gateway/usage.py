"""Token counts as servers report them, made disjoint."""

from __future__ import annotations

from orchard_core.types.model import Usage


def chat_usage(reported: object) -> Usage | None:
    """Counts of a chat completion's `usage`; None when there is none.

    `prompt_tokens` includes what came from or went to a cache, under whichever of the names in use; the
    cached part is taken out of it, never below zero.
    """
    if not isinstance(reported, dict):
        return None
    prompt, output = _count(reported.get("prompt_tokens")), _count(reported.get("completion_tokens"))
    if prompt is None and output is None:
        return None
    details = reported.get("prompt_tokens_details")
    inner = details if isinstance(details, dict) else {}
    total = prompt or 0
    read = _first(inner.get("cached_tokens"), reported.get("prompt_cache_hit_tokens"))
    written = _first(
        inner.get("cache_write_tokens"),
        inner.get("cache_creation_tokens"),
        reported.get("cache_creation_input_tokens"),
    )
    read = min(read, total)
    written = min(written, total - read)
    return Usage(input=total - read - written, cache_read=read, cache_write=written, output=output or 0)


def chat_report(usage: Usage) -> dict[str, object]:
    """The `usage` of a chat completion for given counts."""
    prompt = usage.input + usage.cache_read + usage.cache_write
    return {
        "prompt_tokens": prompt,
        "completion_tokens": usage.output,
        "total_tokens": prompt + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
    }


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _first(*values: object) -> int:
    counts = [count for count in map(_count, values) if count is not None]
    return counts[0] if counts else 0
