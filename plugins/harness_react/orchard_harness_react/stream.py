"""Server-sent events put together to the message they spell."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

from pydantic import JsonValue

from orchard_core import ModelReplyMalformed, model_error
from orchard_harness_react.protocol import Answer, Json, Message


async def assembled(pieces: AsyncIterator[bytes]) -> Answer:
    """The answer that a stream of chat completion chunks spells.

    Raises ModelReplyMalformed when it breaks off, ModelError when the server reports an error in it.
    """
    fields: Json = {"role": "assistant", "content": None}
    finish = ""
    async for line in _lines(pieces):
        if not line.startswith(b"data:"):
            continue
        data = line[5:].strip()
        if data == b"[DONE]":
            break
        choice = _choice(data)
        _grow(fields, choice.get("delta"))
        finish = str(choice.get("finish_reason") or finish)
    if not finish:
        raise ModelReplyMalformed("the stream of the answer broke off before its end")
    message = Message(json.dumps(fields, separators=(",", ":")))
    return Answer(message=message, fields=fields, finish=finish)


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Lines of any length; aiohttp's own reader gives up at 128 KiB."""
    held: list[bytes] = []
    async for piece in pieces:
        *whole, rest = piece.split(b"\n")
        for line in whole:
            yield b"".join([*held, line])
            held.clear()
        held.append(rest)
    yield b"".join(held)


def _choice(data: bytes) -> Json:
    try:
        chunk = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ModelReplyMalformed(f"a piece of the stream is not JSON: {data[:200]!r}") from error
    if not isinstance(chunk, dict):
        raise ModelReplyMalformed(f"a piece of the stream is not an object: {data[:200]!r}")
    if chunk.get("error"):
        raise model_error(500, data)
    choices = chunk.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else {}
    return choice if isinstance(choice, dict) else {}


def _grow(fields: Json, delta: JsonValue) -> None:
    """Put a piece to what is there: texts end to end, lists one after the other, calls by their index."""
    for name, value in delta.items() if isinstance(delta, dict) else ():
        before = fields.get(name)
        if name == "tool_calls" and isinstance(value, list):
            calls = fields.setdefault("tool_calls", [])
            for part in value:
                _grow_call(calls, part)
        elif name != "role" and isinstance(before, str) and isinstance(value, str):
            fields[name] = before + value
        elif isinstance(before, list) and isinstance(value, list):
            fields[name] = [*before, *value]
        elif value is not None:
            fields[name] = value


def _grow_call(calls: JsonValue, part: JsonValue) -> None:
    """Ids and names come once (or are empty in later pieces); arguments come in pieces."""
    if not isinstance(calls, list) or not isinstance(part, dict):
        return
    index = part.get("index")
    place = index if isinstance(index, int) and 0 <= index < len(calls) else len(calls)
    if place == len(calls):
        calls.append({"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
    call, pieces = calls[place], part.get("function")
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(call, dict) or not isinstance(function, dict):
        return
    call |= {name: value for name, value in part.items() if name not in ("index", "function") and value}
    for name, value in pieces.items() if isinstance(pieces, dict) else ():
        if name == "arguments":
            function[name] = f"{function.get(name) or ''}{value or ''}"
        elif value:
            function[name] = value
