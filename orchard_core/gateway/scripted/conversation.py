"""A chat completion request as a scripted model reads it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from orchard_core.errors import ModelRejected
from orchard_core.gateway.contract import UpstreamRequest
from orchard_core.types.model import Dialect

Json = Mapping[str, Any]
"""An object of the request, as JSON gave it."""


@dataclass(frozen=True, kw_only=True)
class OfferedTool:
    """A function the request offers."""

    name: str
    """What to call."""
    parameters: Json
    """JSON Schema of the arguments object."""

    @cached_property
    def properties(self) -> Mapping[str, Json]:
        """Schemas of the arguments by name."""
        found = self.parameters.get("properties")
        return {k: v for k, v in found.items() if isinstance(v, dict)} if isinstance(found, dict) else {}

    @cached_property
    def required(self) -> tuple[str, ...]:
        """Names of the arguments that must be given."""
        found = self.parameters.get("required")
        return tuple(name for name in found if isinstance(name, str)) if isinstance(found, list) else ()


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """One request: what was said so far, and what may be called."""

    body: Json
    """The whole request."""
    index: int
    """The call's index within its session; a repeated call keeps its index."""
    size: int
    """Bytes of the request."""

    @classmethod
    def read(cls, request: UpstreamRequest) -> Conversation:
        """Raises ModelRejected for anything but a chat completion request."""
        if request.dialect is not Dialect.CHAT:
            raise ModelRejected(f"scripted models speak chat completions, not {request.dialect}", status=400)
        try:
            body = json.loads(request.body)
        except (ValueError, RecursionError) as error:
            raise ModelRejected(f"the request is not JSON: {error}", status=400) from error
        if not isinstance(body, dict) or not isinstance(body.get("messages"), list):
            raise ModelRejected("the request has no list of messages", status=400)
        return cls(body=body, index=request.index, size=len(request.body))

    @cached_property
    def messages(self) -> Sequence[Json]:
        """Everything said so far."""
        return [message for message in self.body["messages"] if isinstance(message, dict)]

    @cached_property
    def answers(self) -> Sequence[Json]:
        """The model's own messages, oldest first."""
        return [message for message in self.messages if message.get("role") == "assistant"]

    @cached_property
    def prompt(self) -> str:
        """What the harness said before the model's first answer."""
        said: list[str] = []
        for message in self.messages:
            if message.get("role") == "assistant":
                break
            said.append(text_of(message))
        return "\n".join(said)

    @cached_property
    def native_tools(self) -> tuple[OfferedTool, ...]:
        """Functions offered in the request's `tools`."""
        return tuple(_functions(self.body.get("tools")))

    @cached_property
    def written_tools(self) -> tuple[OfferedTool, ...]:
        """Functions described in the prompt: one JSON object a line between <tools> and </tools>."""
        section = re.search(r"<tools>(.*?)</tools>", self.prompt, re.DOTALL)
        return tuple(_functions(_json_lines(section[1]))) if section else ()

    @property
    def wants_usage(self) -> bool:
        """The client of a stream asked for token counts."""
        options = self.body.get("stream_options")
        return isinstance(options, dict) and options.get("include_usage") is True


def text_of(message: Json) -> str:
    """The text of a message, whether it is a string or a list of parts."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = (part.get("text") for part in content if isinstance(part, dict))
    return "".join(text for text in texts if isinstance(text, str))


def calls_of(message: Json) -> Iterator[tuple[str, str, str]]:
    """(id, name, arguments) of a message's native calls."""
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            yield str(call.get("id", "")), str(function.get("name", "")), str(function.get("arguments", ""))


def _functions(entries: object) -> Iterator[OfferedTool]:
    for entry in entries if isinstance(entries, list) else ():
        if not isinstance(entry, dict):
            continue
        function = entry.get("function", entry)
        if isinstance(function, dict) and isinstance(function.get("name"), str):
            parameters = function.get("parameters")
            yield OfferedTool(
                name=function["name"], parameters=parameters if isinstance(parameters, dict) else {}
            )


def _json_lines(text: str) -> list[object]:
    found: list[object] = []
    for line in text.splitlines():
        try:
            found.append(json.loads(line))
        except (ValueError, RecursionError):
            continue
    return found
