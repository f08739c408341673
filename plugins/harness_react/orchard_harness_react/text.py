"""Calls written in the answer itself, for models without function calling.

A call is a JSON object between <tool_call> and </tool_call>, or, for the shell, a fenced block of `bash`.
Whichever opens first swallows the other, so a file that contains either can be written. A block is closed
by at least as many backticks as opened it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from pydantic import JsonValue

from orchard_core import Tool
from orchard_harness_react.content import image_part, images_of, text_of, utf8
from orchard_harness_react.protocol import Answer, Call, Done, Message

_OPEN = re.compile(r"<tool_call>|^ {0,3}(?P<ticks>`{3,})[ \t]*(?P<language>[^`\n]*)$", re.MULTILINE)
_CLOSE = "</tool_call>"
_SHELL = frozenset({"bash", "sh", "shell"})


class TextProtocol:
    """Calls and results travel as text; results come back in one `user` message."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._has_bash = any(tool.name == "bash" for tool in tools)

    def request_fields(self) -> Mapping[str, JsonValue]:
        """Nothing: the tools stand in the system prompt."""
        return {}

    def calls(self, answer: Answer) -> Sequence[Call]:
        """Blocks and tags in the order they stand in. What comes before `</think>` is not meant."""
        return list(self._found(answer.text.rpartition("</think>")[2]))

    def results(self, done: Sequence[Done]) -> Sequence[Message]:
        """All results in one message, pictures after the text."""
        text = "\n".join(
            f'<tool_result name="{utf8(item.call.name)}">\n{text_of(item.result.content)}\n</tool_result>'
            for item in done
        )
        pictures = [image_part(image) for item in done for image in images_of(item.result.content)]
        return [Message.of("user", [{"type": "text", "text": text}, *pictures] if pictures else text)]

    def how_to_call(self) -> str:
        """Shows the form."""
        tagged = 'Write <tool_call>{"name": ..., "arguments": {...}}</tool_call>'
        return f"{tagged}, or a fenced block of bash." if self._has_bash else f"{tagged}."

    def _found(self, text: str) -> Iterator[Call]:
        at = 0
        while opening := _OPEN.search(text, at):
            start = opening.end()
            ticks, language = opening["ticks"], (opening["language"] or "").strip().lower()
            stop, at = _closing(text, start, ticks)
            is_shell = self._has_bash and language in _SHELL
            if stop is None:
                if not ticks or is_shell:
                    yield Call(name="", arguments="", problem=f"The call is not closed by {_closer(ticks)}.")
                return
            body = text[start:stop]
            if not ticks:
                yield _tagged(body)
            elif is_shell:
                yield Call(
                    name="bash", arguments=json.dumps({"command": body.replace("\r\n", "\n").strip("\n")})
                )


def _closing(text: str, start: int, ticks: str | None) -> tuple[int | None, int]:
    """Where the block's content stops, and where to read on; (None, end) when it is never closed."""
    if not ticks:
        stop = text.find(_CLOSE, start)
        return (stop, stop + len(_CLOSE)) if stop >= 0 else (None, len(text))
    closing = re.compile(rf"^ {{0,3}}`{{{len(ticks)},}}[ \t\r]*$", re.MULTILINE).search(text, start)
    return (closing.start(), closing.end()) if closing else (None, len(text))


def _closer(ticks: str | None) -> str:
    return f"a line of {ticks}" if ticks else _CLOSE


def _tagged(body: str) -> Call:
    try:
        call = json.loads(body)
    except (ValueError, RecursionError) as error:
        return Call(name="", arguments="", problem=f"The text of <tool_call> is not JSON: {error}.")
    name = call.get("name") if isinstance(call, dict) else None
    if not isinstance(name, str):
        return Call(name="", arguments="", problem='A call is an object {"name": "...", "arguments": {...}}.')
    arguments = call.get("arguments", {})
    return Call(name=name, arguments=arguments if isinstance(arguments, str) else json.dumps(arguments))
