"""The top-level members of a request: the same rules in every dialect, each member read once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from orchard_core.gateway.conversation import Heard
from orchard_core.gateway.dialect import Request
from orchard_core.gateway.json_text import (
    JsonFault,
    ascii_text,
    dumps_ascii,
    is_utf8,
    skip,
    walk_object,
    whole,
)
from orchard_core.types.model import Dialect


class Members:
    """What is gathered of a request beside its conversation."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.fields: set[str] = set()
        self.values: dict[str, Any] = {}
        self.tools: str | None = None
        self._params: list[str] = []

    def walk(self, member: Callable[[str, int], int]) -> None:
        """Visit each member; `member` takes its name and where its value starts, and gives where that ends.

        Raises JsonFault, also for a name that comes twice: parsers disagree on which of two wins, so a check
        of one could pass the other.
        """

        def once(key: str, at: int) -> int:
            if key in self.fields:
                raise JsonFault(f"the field {key!r} is given twice")
            self.fields.add(key)
            return member(key, at)

        start = skip(self.text, 0)
        if self.text[start : start + 1] != "{":
            raise JsonFault("the body must be a JSON object")
        whole(self.text, walk_object(self.text, start, once))

    def keep(self, key: str, value: object, raw: str) -> None:
        """A member that is no part of the conversation."""
        if key == "tools":
            self.tools = ascii_text(raw)
        else:
            self._params.append(f"{dumps_ascii(key)}:{ascii_text(raw)}")
            self.values[key] = value

    def request(self, dialect: Dialect, body: bytes, heard: Heard, *, usage_wanted: bool) -> Request:
        """The whole request. Raises JsonFault for a model or stream flag that is none."""
        model, stream = self.values.get("model"), self.values.get("stream")
        if not isinstance(model, str):
            raise JsonFault("`model` must be a string")
        if stream is not None and not isinstance(stream, bool):
            raise JsonFault("`stream` must be true or false")
        return Request(
            dialect=dialect,
            wire=dialect,
            body=body if is_utf8(body) else ascii_text(self.text).encode(),
            model=model,
            stream=bool(stream),
            fields=frozenset(self.fields),
            usage_wanted=usage_wanted,
            heard=heard,
            tools=self.tools,
            params="{" + ",".join(self._params) + "}",
        )
