"""Chat messages of other people's files in the one shape that rows have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from orchard_core.formats.fault import Fault
from orchard_core.formats.text import a_list, a_text, an_object, dumped

Fields = dict[str, Any]

_LONGEST_ROLE = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """Messages as a row holds them, and how the file held them."""

    messages: Sequence[Fields]
    """OpenAI's shape; call arguments are texts; no member is null except `content`."""
    objects: bool = False
    """The file gave call arguments as objects."""
    text: str = ""
    """The messages as a row's JSON text, where somebody made it already; empty: not yet."""


def conversation(value: Any, field: str = "messages", *, filled: bool = False) -> Conversation:
    """Check and straighten a list of messages. `filled`: members that other rows have stand in it as null, as
    nested Parquet columns have them, in call arguments too. Raises Fault."""
    given = a_list(value, field)
    if is_plain(given):
        return Conversation(messages=given)
    seen = _Seen(filled=filled)
    messages = [seen.message(item, f"{field}[{place}]") for place, item in enumerate(given)]
    return Conversation(messages=messages, objects=seen.objects)


def is_plain(messages: list[Any]) -> bool:
    """Whether messages are in a row's shape already, member by member, as nearly all are."""
    for message in messages:
        if type(message) is not dict:
            return False
        check = _PLAIN.get(tuple(message))
        if check is None or not check(message):
            return False
        role, content = message["role"], message["content"]
        if type(role) is not str or not 0 < len(role) <= _LONGEST_ROLE:
            return False
        if content is not None and type(content) is not str:
            return False
    return True


def _plain_calls(message: Fields) -> bool:
    calls = message["tool_calls"]
    if type(calls) is not list or not calls:
        return False
    for call in calls:
        if type(call) is not dict or tuple(call) != _CALL:
            return False
        function = call["function"]
        if call["type"] != "function" or type(call["id"]) is not str or type(function) is not dict:
            return False
        if tuple(function) != _FUNCTION:
            return False
        if type(function["name"]) is not str or type(function["arguments"]) is not str:
            return False
    return True


class _Seen:
    def __init__(self, *, filled: bool) -> None:
        self._filled = filled
        self.objects = False

    def message(self, value: Any, field: str) -> Fields:
        message = an_object(value, field)
        role = a_text(message.get("role"), f"{field}.role")
        if not role or len(role) > _LONGEST_ROLE:
            raise Fault("a role has 1 to 64 characters", field=f"{field}.role")
        plain: Fields = {"role": role, "content": self._content(message.get("content"), f"{field}.content")}
        plain |= {
            key: item
            for key, item in message.items()
            if item is not None and key not in ("role", "content", "tool_calls", "tool_call_id")
        }
        calls = message.get("tool_calls")
        if calls:  # an empty list says as much as none
            listed = a_list(calls, f"{field}.tool_calls")
            plain["tool_calls"] = [
                self._call(call, f"{field}.tool_calls[{place}]") for place, call in enumerate(listed)
            ]
        if message.get("tool_call_id") is not None:
            plain["tool_call_id"] = a_text(message["tool_call_id"], f"{field}.tool_call_id")
        return plain

    def _content(self, value: Any, field: str) -> Any:
        if value is None or isinstance(value, str):
            return value
        return [self._part(part, f"{field}[{place}]") for place, part in enumerate(a_list(value, field))]

    def _part(self, value: Any, field: str) -> Fields:
        part = an_object(value, field)
        a_text(part.get("type"), f"{field}.type")
        return without_nulls(part) if self._filled else part

    def _call(self, value: Any, field: str) -> Fields:
        call = an_object(value, field)
        function = an_object(call.get("function", call), f"{field}.function")
        name = a_text(function.get("name"), f"{field}.function.name")
        arguments = self._arguments(function.get("arguments"), f"{field}.function.arguments")
        rest = {key: item for key, item in call.items() if key not in _CALL and item is not None}
        if function is call:
            rest = {key: item for key, item in rest.items() if key not in ("name", "arguments")}
        return {
            "id": str(call.get("id") or ""),
            "type": "function",
            "function": {"name": name, "arguments": arguments},
            **rest,
        }

    def _arguments(self, value: Any, field: str) -> str:
        if value is None:
            return ""
        if isinstance(value, str):
            return value
        an_object(value, field)
        self.objects = True
        return dumped(without_nulls(value) if self._filled else value)


_CALL = ("id", "type", "function")
_FUNCTION = ("name", "arguments")
_PLAIN: dict[tuple[str, ...], Callable[[Fields], bool]] = {
    ("role", "content"): lambda message: True,
    ("role", "content", "tool_calls"): _plain_calls,
    ("role", "content", "tool_call_id"): lambda message: type(message["tool_call_id"]) is str,
}
"""By a message's members, in the order that rows have."""


def without_nulls(value: Any) -> Any:
    """The value without members that are null, at any depth."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value


def content_text(content: Any) -> str:
    """The text of a message's content, pictures left out."""
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, dict))
        return "".join(part for part in parts if isinstance(part, str))
    return content or ""
