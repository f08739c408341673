"""Reading a messages request: checked once, its messages cut out by their exact text."""

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
    is_utf8,
    scan,
    skip,
    walk_array,
    walk_object,
    whole,
)
from orchard_core.types.model import Dialect


def read_request(body: bytes, conversation: Conversation) -> Request:
    """Read a request. Its `system` field counts as the first message. Raises JsonFault."""
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
        self.system: str | None = None
        self.sent: list[str] = []
        self.roles: list[str] = []

    def member(self, key: str, at: int) -> int:
        """One top-level member."""
        if key in self.fields:
            # Parsers disagree on which of two wins, so a check of one could pass the other.
            raise JsonFault(f"the field {key!r} is given twice")
        self.fields.add(key)
        if key == "messages":
            return walk_array(self.text, at, self.message)
        value, end = scan(self.text, at)
        raw = self.text[at:end]
        if key == "system":
            self.system = raw
        elif key == "tools":
            self.tools = ascii_text(raw)
        else:
            self.params.append(f"{dumps_ascii(key)}:{ascii_text(raw)}")
            self.values[key] = value
        return end

    def message(self, at: int) -> int:
        """One message."""
        value, end = scan(self.text, at)
        role = value.get("role") if isinstance(value, dict) else None
        if not isinstance(role, str):
            raise JsonFault(f"messages[{len(self.sent)}] must be an object with a `role`")
        self.sent.append(self.text[at:end])
        self.roles.append(ascii_text(role))
        return end

    def request(self, body: bytes, conversation: Conversation) -> Request:
        """What was read."""
        model, stream = self.values.get("model"), self.values.get("stream", False)
        if not isinstance(model, str):
            raise JsonFault("`model` must be a string")
        if "messages" not in self.fields:
            raise JsonFault("`messages` is missing")
        if not self.sent:
            raise JsonFault("`messages` must not be empty")
        if stream is not None and not isinstance(stream, bool):
            raise JsonFault("`stream` must be true or false")
        if self.system is not None:
            self.sent.insert(0, f'{{"role":"system","content":{self.system}}}')
            self.roles.insert(0, "system")
        return Request(
            dialect=Dialect.MESSAGES,
            wire=Dialect.MESSAGES,
            body=body if is_utf8(body) else ascii_text(self.text).encode(),
            model=model,
            stream=bool(stream),
            fields=frozenset(self.fields),
            usage_wanted=True,
            heard=heard_of(self.sent, self.roles, conversation.heads),
            tools=self.tools,
            params="{" + ",".join(self.params) + "}",
        )
