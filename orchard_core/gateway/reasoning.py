"""Reasoning in chat completions, under whichever name a server gives it."""

from __future__ import annotations

from collections.abc import Mapping

FIELDS = ("reasoning_content", "reasoning")
"""Names in use; the first is the usual one."""


def reasoning_of(message: Mapping[str, object]) -> tuple[str, str] | None:
    """The field and the text of what a message (or a piece of one) holds; servers that repeat it under both
    names are taken once. None for none."""
    for field in FIELDS:
        text = message.get(field)
        if isinstance(text, str) and text:
            return field, text
    return None
