"""Whether a message in a request is a model's own earlier answer, sent back.

Clients drop fields, reorder keys and turn null content into an empty string; what counts is what a chat
template would render: text and calls. Arguments are compared as exact strings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchard_core.gateway.json_text import JsonFault, loads


def is_answer(raw: str) -> bool:
    """Whether the message (JSON text) has the role of a model's answer."""
    message = _parsed(raw)
    return message is not None and message.get("role") == "assistant"


def same_answer(left: str, right: str) -> bool:
    """Whether two assistant messages (JSON text) say the same thing."""
    if left == right:
        return True
    one, other = _parsed(left), _parsed(right)
    return one is not None and other is not None and _gist(one) == _gist(other)


def _parsed(raw: str) -> Mapping[str, Any] | None:
    try:
        value = loads(raw)
    except JsonFault:
        return None
    return value if isinstance(value, dict) else None


def _gist(message: Mapping[str, Any]) -> tuple[object, ...]:
    calls = message.get("tool_calls")
    return (
        message.get("role", "assistant"),
        _text(message.get("content")),
        tuple(_call(call) for call in calls) if isinstance(calls, list) else (),
    )


def _text(content: object) -> object:
    if content is None:
        return ""
    if not isinstance(content, list):
        return content
    texts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"]
    if len(texts) == len(content) and all(isinstance(text, str) for text in texts):
        return "".join(map(str, texts))
    return repr(content)


def _call(call: object) -> tuple[object, ...]:
    if not isinstance(call, dict):
        return (repr(call),)
    function = call.get("function")
    if not isinstance(function, dict):
        return (repr(call),)
    return (call.get("id"), function.get("name"), function.get("arguments"))
