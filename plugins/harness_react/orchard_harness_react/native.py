"""Native function calling, as OpenAI chat completions have it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from orchard_core import Tool
from orchard_harness_react.content import image_part, images_of, text_of
from orchard_harness_react.protocol import Answer, Call, Done, Message


class NativeProtocol:
    """Calls travel in `tool_calls`, results in messages of role `tool`."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools = tools

    def request_fields(self) -> Mapping[str, JsonValue]:
        """The tools' definitions; left out when there is no tool, as servers refuse an empty list."""
        functions: list[JsonValue] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": dict(tool.parameters),
                },
            }
            for tool in self._tools
        ]
        return {"tools": functions} if functions else {}

    def calls(self, answer: Answer) -> Sequence[Call]:
        """What stands in `tool_calls`."""
        entries = answer.fields.get("tool_calls")
        return [_call(entry) for entry in entries] if isinstance(entries, list) else []

    def results(self, done: Sequence[Done]) -> Sequence[Message]:
        """One `tool` message a call. Tool messages carry no pictures, so those follow in a `user` message."""
        messages = [
            Message.of("tool", text_of(item.result.content), tool_call_id=item.call.id) for item in done
        ]
        pictures: list[JsonValue] = []
        for item in done:
            for image in images_of(item.result.content):
                pictures += [{"type": "text", "text": f"Image from {item.call.name}:"}, image_part(image)]
        return [*messages, Message.of("user", pictures)] if pictures else messages

    def how_to_call(self) -> str:
        """Names the tools."""
        return f"Call one of the tools: {', '.join(tool.name for tool in self._tools)}."


def _call(entry: JsonValue) -> Call:
    call = entry if isinstance(entry, dict) else {}
    function = call.get("function")
    if not isinstance(function, dict):
        return Call(id=_text(call.get("id")), name="", arguments="", problem="The call is not of a function.")
    arguments = function.get("arguments")
    return Call(
        id=_text(call.get("id")),
        name=_text(function.get("name")),
        arguments=arguments if isinstance(arguments, str) else json.dumps(arguments or {}),
    )


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""
