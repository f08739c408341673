"""The signatures of thinking blocks that were made from a chat server's reasoning."""

from __future__ import annotations

from orchard_core.gateway.reasoning import FIELDS

_OURS = "orchard:"


def signature_of(field: str) -> str:
    """The signature of a thinking block: it names the chat field that the text came in."""
    return f"{_OURS}{field}"


def reasoning_field(signature: object) -> str | None:
    """The chat field that a thinking block came from; None for a block of another maker."""
    name = signature.removeprefix(_OURS) if isinstance(signature, str) else ""
    return name if name in FIELDS and signature != name else None
