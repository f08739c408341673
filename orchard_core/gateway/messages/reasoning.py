"""Reasoning: chat's fields and the messages dialect's thinking blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

FIELDS = ("reasoning_content", "reasoning")
"""Names under which chat servers give it; the first is the usual one."""

_OURS = "orchard:"


def signature_of(field: str) -> str:
    """The signature of a thinking block: it names the chat field that the text came in."""
    return f"{_OURS}{field}"


def reasoning_field(signature: object) -> str | None:
    """The chat field that a thinking block came from; None for a block of another maker."""
    name = signature.removeprefix(_OURS) if isinstance(signature, str) else ""
    return name if name in FIELDS and signature != name else None


def reasoning_of(message: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """The field and the text of what a message (or a piece of one) holds; servers that repeat it under
    both names are taken once."""
    for field in FIELDS:
        text = message.get(field)
        if isinstance(text, str) and text:
            yield field, text
            return
