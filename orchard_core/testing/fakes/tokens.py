"""A toy tokenizer: an id per byte and three marks, so that prompts extend answers exactly."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

START, MIDDLE, END = 256, 257, 258
"""Before a role, between role and content, after a message."""


def render(messages: Sequence[Mapping[str, Any]]) -> tuple[int, ...]:
    """Ids of a conversation, the prompt for the next answer included."""
    ids: list[int] = []
    for message in messages:
        ids += (START, *str(message.get("role", "")).encode(), MIDDLE, *spell(message))
    return (*ids, START, *b"assistant", MIDDLE)


def spell(message: Mapping[str, Any]) -> tuple[int, ...]:
    """Ids of one message's content and calls, its end included: what a model samples for an answer."""
    body = {key: message[key] for key in ("content", "tool_calls") if message.get(key)}
    return (*json.dumps(body, sort_keys=True).encode(), END)
