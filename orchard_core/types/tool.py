"""Tool calls and their results."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field, JsonValue

from orchard_core.types.base import Record
from orchard_core.types.content import Content, Text


class ToolSpec(Record):
    """A tool as a model sees it."""

    name: str
    """What the model calls; `[a-zA-Z0-9_-]{1,64}`."""
    description: str
    """What it does, in words for a model."""
    parameters: Mapping[str, JsonValue]
    """JSON Schema of the arguments object."""


class ToolCall(Record):
    """One call that a model made."""

    id: str
    """The model's or server's id of this call."""
    name: str
    """The tool's name as the model wrote it."""
    arguments: str
    """The arguments exactly as received (usually JSON text): re-serialising would break token equality."""


class ToolResult(Record):
    """What a tool gave back."""

    content: tuple[Content, ...] = ()
    """What the model sees, in order."""
    is_error: bool = False
    """The call failed; the content says why and what to do instead."""
    ends: bool = False
    """The episode ends with this call."""
    answer: str | None = Field(default=None)
    """The final answer, when the call carried one (only with `ends`)."""

    @classmethod
    def text(cls, text: str, *, is_error: bool = False, ends: bool = False) -> ToolResult:
        """A result of one piece of text."""
        return cls(content=(Text(text=text),), is_error=is_error, ends=ends)
