"""A recorded conversation as text for people: who said what, one block a message."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from orchard_core.evals.clean import clean
from orchard_core.types.model import Message

Kind = Literal["text", "thought", "call"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A piece of a message."""

    kind: Kind
    """What it is: said, thought, or a tool call."""
    text: str
    """Clean text, ready for a terminal."""


def blocks(message: Message) -> Iterator[Block]:
    """The pieces of one message in reading order, whatever dialect it came in."""
    try:
        raw = json.loads(message.raw)
    except ValueError:
        yield Block(kind="text", text=clean(message.raw))
        return
    if not isinstance(raw, dict):
        yield Block(kind="text", text=clean(json.dumps(raw)))
        return
    thought = raw.get("reasoning_content") or raw.get("reasoning")
    if isinstance(thought, str) and thought:
        yield Block(kind="thought", text=clean(thought))
    yield from _content(raw.get("content"))
    for call in _list(raw.get("tool_calls")):
        yield Block(kind="call", text=_call(call))


def _content(content: JsonValue) -> Iterator[Block]:
    if isinstance(content, str):
        if content:
            yield Block(kind="text", text=clean(content))
        return
    for part in _list(content):
        yield Block(kind="text", text=_part(part))


def _part(part: JsonValue) -> str:
    if isinstance(part, dict):
        if isinstance(part.get("text"), str):
            return clean(str(part["text"]))
        return f"[{clean(str(part.get('type', 'part')))}]"
    return clean(str(part))


def _call(call: JsonValue) -> str:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return clean(json.dumps(call))
    name, arguments = clean(str(function.get("name"))), _arguments(function.get("arguments"))
    return f"{name}: {arguments}" if arguments not in ("", "{}") else name


def _arguments(arguments: JsonValue) -> str:
    """A single string argument as itself, which is how a shell command reads best; else the JSON."""
    try:
        parsed = json.loads(arguments) if isinstance(arguments, str) else arguments
    except ValueError:
        return clean(str(arguments))
    if isinstance(parsed, dict) and len(parsed) == 1:
        (value,) = parsed.values()
        if isinstance(value, str):
            return clean(value)
    return clean(arguments if isinstance(arguments, str) else json.dumps(arguments))


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def shorten(text: str, *, lines: int) -> str:
    """Head and tail of a long text; the cut says how much is left out and how to see it."""
    every = text.splitlines()
    if len(every) <= lines:
        return text.rstrip("\n")
    head, tail = lines * 2 // 3, lines - lines * 2 // 3
    left = len(every) - head - tail
    return "\n".join([*every[:head], f"[... {left} lines, see --full ...]", *every[-tail:]])
