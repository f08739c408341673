"""The pieces of one message in reading order, whichever of the three dialects it is in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from orchard_core.viewer.image import is_data_url

Kind = Literal["text", "thought", "call", "result", "image", "other"]
UNPARSED = 64 << 20
"""Characters of a message beyond which it is shown as it stands, not taken apart."""
_THOUGHTS = ("reasoning_content", "reasoning", "thinking")
_RESULTS = frozenset({"tool_result", "function_call_output", "custom_tool_call_output"})
_CALLS = frozenset({"tool_use", "function_call", "custom_tool_call", "server_tool_use"})
_MOST = 2_000
"""Pieces of one message that are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a message."""

    kind: Kind
    """What it is."""
    text: str
    """What was said or thought, the exact arguments of a call, or the address of an image."""
    name: str = ""
    """The tool of a call, or what a part calls itself."""
    call_id: str = ""
    """What joins a call and its result."""
    failed: bool = False
    """A result that says it is an error."""


def pieces(raw: str) -> list[Piece]:
    """The pieces of a message given as JSON text; never raises."""
    if len(raw) > UNPARSED:
        return [Piece(kind="other", text=raw, name="message too long to take apart")]
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return [Piece(kind="other", text=raw, name="not JSON")]
    return pieces_of(value)


def pieces_of(value: JsonValue) -> list[Piece]:
    """The same of a message that is parsed already."""
    found: list[Piece] = []
    for piece in _message(value):
        if len(found) == _MOST:
            found.append(Piece(kind="other", text="", name=f"more than {_MOST:,} parts; see the raw record"))
            break
        found.append(piece)
    return found


def _message(value: JsonValue) -> Iterator[Piece]:
    if not isinstance(value, dict):
        yield Piece(kind="other", text=_json(value))
        return
    for name in _THOUGHTS:
        if isinstance(thought := value.get(name), str) and thought:
            yield Piece(kind="thought", text=thought)
            break
    if value.get("role") == "tool":
        yield from _result(value, str(value.get("tool_call_id") or ""))
    elif "role" in value or value.get("type") == "message":
        yield from _content(value.get("content"))
    else:
        yield from _part(value)  # an item of the responses dialect
    if isinstance(refusal := value.get("refusal"), str) and refusal:
        yield Piece(kind="text", text=refusal, name="refusal")
    for call in _list(value.get("tool_calls")):
        yield _chat_call(call)


def _content(content: JsonValue) -> Iterator[Piece]:
    if isinstance(content, str):
        if content:
            yield Piece(kind="text", text=content)
        return
    for part in _list(content):
        yield from _part(part)


def _part(part: JsonValue) -> Iterator[Piece]:
    if not isinstance(part, dict):
        yield Piece(kind="other", text=part if isinstance(part, str) else _json(part))
        return
    kind = part.get("type")
    if kind in ("thinking", "reasoning"):
        yield Piece(kind="thought", text=_thought(part))
    elif kind in _CALLS:
        given = part.get("input", part.get("arguments", ""))
        arguments = given if isinstance(given, str) else _json(given)
        yield Piece(kind="call", text=arguments, name=str(part.get("name")), call_id=_id(part))
    elif kind in _RESULTS:
        yield from _result(part, _id(part))
    elif address := _image(part):
        yield Piece(kind="image", text=address)
    elif isinstance(text := part.get("text"), str):
        yield Piece(kind="text", text=text)
    else:
        yield Piece(kind="other", text=_json(part), name=str(kind or ""))


def _result(part: dict[str, JsonValue], call_id: str) -> Iterator[Piece]:
    content = part.get("content", part.get("output"))
    failed = part.get("is_error") is True
    inner = list(_content(content))
    for piece in inner or [Piece(kind="text", text="")]:
        if piece.kind == "text":
            name = str(part.get("name") or "")
            yield Piece(kind="result", text=piece.text, name=name, call_id=call_id, failed=failed)
        else:
            yield piece


def _chat_call(call: JsonValue) -> Piece:
    function = call.get("function", call.get("custom")) if isinstance(call, dict) else None
    if not isinstance(call, dict) or not isinstance(function, dict):
        return Piece(kind="other", text=_json(call), name="call")
    given = function.get("arguments", function.get("input", ""))
    arguments = given if isinstance(given, str) else _json(given)
    return Piece(
        kind="call", text=arguments, name=str(function.get("name")), call_id=str(call.get("id") or "")
    )


def _thought(part: dict[str, JsonValue]) -> str:
    if isinstance(text := part.get("thinking"), str):
        return text
    every = [*_list(part.get("content")), *_list(part.get("summary"))]
    texts = [str(item.get("text", "")) for item in every if isinstance(item, dict)]
    return "\n\n".join(texts) or "(not shown by the vendor)"


def _image(part: dict[str, JsonValue]) -> str:
    """The address of a picture, made from parts where it is given so; empty: this is none."""
    address = part.get("image_url")
    if isinstance(address, dict):
        address = address.get("url")
    if isinstance(address, str):
        return address
    source = part.get("source")
    if part.get("type") == "image" and isinstance(source, dict):
        if isinstance(data := source.get("data"), str):
            return f"data:{source.get('media_type', 'image/png')};base64,{data}"
        return str(source.get("url", ""))
    if part.get("type") == "image" and isinstance(part.get("data"), str):
        return f"data:{part.get('mimeType', 'image/png')};base64,{part['data']}"
    url = part.get("url")
    return url if isinstance(url, str) and is_data_url(url) else ""


def _id(part: dict[str, JsonValue]) -> str:
    return str(part.get("call_id") or part.get("tool_use_id") or part.get("id") or "")


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def _json(value: JsonValue) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, indent=1)
    except (ValueError, RecursionError):
        return "(nested too deeply)"
