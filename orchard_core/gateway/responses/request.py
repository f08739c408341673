"""Reading a responses request: checked once, its items cut out by their exact text."""

from __future__ import annotations

from typing import Any

from orchard_core.gateway.conversation import Conversation
from orchard_core.gateway.dialect import Request
from orchard_core.gateway.heard import heard_of
from orchard_core.gateway.json_text import (
    JsonFault,
    ascii_text,
    decode,
    dumps_ascii,
    scan,
    skip,
    walk_array,
    walk_object,
    whole,
)
from orchard_core.types.model import Dialect

ROLES = {
    "reasoning": "assistant",
    "function_call": "assistant",
    "custom_tool_call": "assistant",
    "local_shell_call": "assistant",
    "function_call_output": "tool",
    "custom_tool_call_output": "tool",
    "local_shell_call_output": "tool",
}
"""Who speaks in an item that is no message. What is not here is the model's: servers run its tools."""


def read_request(body: bytes, conversation: Conversation) -> Request:
    """Read a request. Its `instructions` count as the first message. Raises JsonFault."""
    text = decode(body)
    reader = _Reader(text)
    start = skip(text, 0)
    if text[start : start + 1] != "{":
        raise JsonFault("the body must be a JSON object")
    whole(text, walk_object(text, start, reader.member))
    return reader.request(body, conversation)


class _Reader:
    """Visits a request's members."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.fields: set[str] = set()
        self.values: dict[str, Any] = {}
        self.params: list[str] = []
        self.tools: str | None = None
        self.instructions: str | None = None
        self.sent: list[str] = []
        self.roles: list[str] = []

    def member(self, key: str, at: int) -> int:
        """One top-level member."""
        if key in self.fields:
            # Parsers disagree on which of two wins, so a check of one could pass the other.
            raise JsonFault(f"the field {key!r} is given twice")
        self.fields.add(key)
        if key == "input" and self.text[at : at + 1] == "[":
            return walk_array(self.text, at, self.item)
        value, end = scan(self.text, at)
        raw = self.text[at:end]
        if key == "input":
            self.only(value, raw)
        elif key == "tools":
            self.tools = ascii_text(raw)
        elif key == "instructions" and value is not None:
            self.instructions = raw
        else:
            self.params.append(f"{dumps_ascii(key)}:{ascii_text(raw)}")
            self.values[key] = value
        return end

    def only(self, value: object, raw: str) -> None:
        """Input that is one text."""
        if not isinstance(value, str):
            raise JsonFault("`input` must be a string or an array of items")
        self.sent.append(f'{{"role":"user","content":{raw}}}')
        self.roles.append("user")

    def item(self, at: int) -> int:
        """One item."""
        value, end = scan(self.text, at)
        if not isinstance(value, dict):
            raise JsonFault(f"input[{len(self.sent)}] must be an object")
        role = value.get("role")
        kind = value.get("type")
        if not isinstance(role, str):
            role = ROLES.get(kind, "assistant") if isinstance(kind, str) else "user"
        self.sent.append(self.text[at:end])
        self.roles.append(ascii_text(role))
        return end

    def request(self, body: bytes, conversation: Conversation) -> Request:
        """What was read."""
        model, stream = self.values.get("model"), self.values.get("stream", False)
        if not isinstance(model, str):
            raise JsonFault("`model` must be a string")
        if not self.sent:
            raise JsonFault("`input` is empty" if "input" in self.fields else "`input` is missing")
        if stream is not None and not isinstance(stream, bool):
            raise JsonFault("`stream` must be true or false")
        if self.instructions is not None:
            self.sent.insert(0, f'{{"role":"system","content":{self.instructions}}}')
            self.roles.insert(0, "system")
        return Request(
            dialect=Dialect.RESPONSES,
            wire=Dialect.RESPONSES,
            body=body if _strict(body) else ascii_text(self.text).encode(),
            model=model,
            stream=bool(stream),
            fields=frozenset(self.fields),
            usage_wanted=True,
            heard=heard_of(self.sent, self.roles, conversation.heads),
            tools=self.tools,
            params="{" + ",".join(self.params) + "}",
        )


def _strict(body: bytes) -> bool:
    """Whether the body is UTF-8 as the standard has it (no raw surrogates)."""
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True
