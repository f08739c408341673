"""How tool calls travel between harness and model: natively or in the text."""

from __future__ import annotations

import json
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from orchard_core import ToolResult

Json = dict[str, JsonValue]
"""A JSON object."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message as it travels: made to text once, and never changed."""

    raw: str
    """Its JSON. What the model said stays as it came, character by character."""

    @classmethod
    def of(cls, role: str, content: JsonValue, **fields: JsonValue) -> Message:
        """A message of ours."""
        return cls(json.dumps({"role": role, "content": content, **fields}, separators=(",", ":")))

    def parsed(self) -> Json:
        """Its fields."""
        found: Json = json.loads(self.raw)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the model said."""

    message: Message
    """The assistant message exactly as received."""
    fields: Json
    """The same, parsed."""
    finish: str
    """The server's finish reason; `length` when the answer was cut."""

    @property
    def text(self) -> str:
        """What it said in words."""
        content = self.fields.get("content")
        if isinstance(content, str):
            return content
        parts = content if isinstance(content, list) else []
        texts = (part.get("text") for part in parts if isinstance(part, dict))
        return "".join(text for text in texts if isinstance(text, str))


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call as the model wrote it, not yet checked."""

    id: str = ""
    """What a native result refers to."""
    name: str
    """The tool it names."""
    arguments: str
    """The arguments, which ought to be JSON."""
    problem: str = ""
    """Why it cannot be read at all; empty when it can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A call and what came of it."""

    call: Call
    """The call."""
    result: ToolResult
    """Its result, already cut to size."""


class Protocol(typing.Protocol):
    """One way of calling tools."""

    def request_fields(self) -> Mapping[str, JsonValue]:
        """Fields that every request carries, such as `tools`."""

    def calls(self, answer: Answer) -> Sequence[Call]:
        """The calls of an answer, in order."""

    def results(self, done: Sequence[Done]) -> Sequence[Message]:
        """Messages that show the model what its calls gave."""

    def how_to_call(self) -> str:
        """A sentence for a model that called nothing."""
