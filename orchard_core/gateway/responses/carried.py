"""What an answer's items cannot say of the chat message they were made from, carried in `encrypted_content`.

The field is made for it: opaque to clients, and sent back by them with the item. It needs no secret here: a
client could as well have sent the chat message itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from orchard_core.gateway.json_text import JsonFault, dumps_ascii, loads
from orchard_core.gateway.reasoning import FIELDS

MARK = "orchard:"
"""What stands before it: reasoning of another maker begins otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """The remainder of one chat message."""

    name: str = FIELDS[0]
    """Field of the chat message that holds the item's text."""
    joins: bool = False
    """The item goes on with the message before it, instead of beginning a new one."""
    rest: Mapping[str, Any] = field(default_factory=dict)
    """Fields that are not as the items say."""
    calls: Mapping[str, Any] = field(default_factory=dict)
    """Tool calls that are not as their items say, by id."""


def write(carried: Carried) -> str:
    """As text."""
    said: dict[str, object] = {}
    if carried.name != FIELDS[0]:
        said["name"] = carried.name
    if carried.joins:
        said["joins"] = True
    if carried.rest:
        said["rest"] = carried.rest
    if carried.calls:
        said["calls"] = carried.calls
    return MARK + dumps_ascii(said)


def read(text: object) -> Carried | None:
    """From text; None for what is not ours."""
    if not isinstance(text, str) or not text.startswith(MARK):
        return None
    try:
        said = loads(text[len(MARK) :])
    except JsonFault:
        return None
    if not isinstance(said, dict):
        return None
    name, rest, calls = said.get("name", FIELDS[0]), said.get("rest", {}), said.get("calls", {})
    if name not in FIELDS or not isinstance(rest, dict) or not isinstance(calls, dict):
        return None
    rest.pop("role", None)
    return Carried(name=name, joins=said.get("joins") is True, rest=rest, calls=calls)


def remainder(message: Mapping[str, Any], rebuilt: Mapping[str, Any]) -> Carried:
    """What `rebuilt` lacks of `message`. A field that is null or empty says nothing and is not missed."""
    rest = {
        key: value
        for key, value in message.items()
        if key not in ("role", "tool_calls") and value not in _NOTHING and rebuilt.get(key) != value
    }
    theirs = {call["id"]: call for call in rebuilt.get("tool_calls", ())}
    ours = {call["id"]: call for call in message.get("tool_calls") or ()}
    return Carried(
        joins=True,
        rest=rest,
        calls={key: call for key, call in ours.items() if theirs.get(key) != _placeless(call)},
    )


def _placeless(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """Without the place in a stream, which some servers leave in whole answers."""
    return {key: value for key, value in call.items() if key != "index"}


_NOTHING: tuple[object, ...] = (None, "", [], {})


def restore(message: dict[str, Any], carried: Carried) -> None:
    """Put back what was carried. A text or call that the harness has changed since stays as it is."""
    for key, value in carried.rest.items():
        if key != "content" or flat(value) == (message.get("content") or ""):
            message[key] = value
    for place, call in enumerate(message.get("tool_calls", ())):
        original = carried.calls.get(call["id"])
        if isinstance(original, dict):
            message["tool_calls"][place] = original


def flat(content: object) -> str:
    """Text of a message's content, whether it came as a string or in parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    return "".join(text for text in texts if isinstance(text, str))
