"""What a fake model is told to say."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from orchard_core.errors import OrchardError
from orchard_core.types.model import Usage
from orchard_core.types.tool import ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeReply:
    """One answer, or the error raised in its place."""

    text: str = ""
    """The answer's text."""
    calls: tuple[ToolCall, ...] = ()
    """The tool calls it makes."""
    error: OrchardError | None = None
    """Raised instead of answering."""
    delay_s: float = 0.0
    """Time before the answer, seconds."""
    finish: str | None = None
    """The finish reason; None: `tool_calls` with calls, else `stop`."""
    usage: Usage | None = None
    """Told in the body; None: counted with the toy tokenizer."""
    body: bytes | None = field(default=None, repr=False)
    """Sent as it is in place of a well-formed answer."""

    @classmethod
    def call(cls, name: str, /, *, text: str = "", **arguments: object) -> FakeReply:
        """An answer that calls one tool."""
        call = ToolCall(id=f"call_{uuid.uuid4().hex[:8]}", name=name, arguments=json.dumps(arguments))
        return cls(text=text, calls=(call,))

    def message(self) -> Mapping[str, Any]:
        """The answer as a chat message."""
        message: dict[str, Any] = {"role": "assistant", "content": self.text or None}
        if self.calls:
            message["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in self.calls
            ]
        return message

    @property
    def finish_reason(self) -> str:
        """As the server would say it."""
        return self.finish or ("tool_calls" if self.calls else "stop")
