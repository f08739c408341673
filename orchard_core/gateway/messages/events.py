"""The events of a streamed messages answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from orchard_core.errors import ModelReplyMalformed
from orchard_core.gateway.json_text import JsonFault, dumps, loads
from orchard_core.gateway.messages.usage import messages_report
from orchard_core.gateway.sse import framed
from orchard_core.types.model import Usage

STOP = framed(b'{"type":"message_stop"}', "message_stop")
PING = framed(b'{"type":"ping"}', "ping")

_TEXTS = {
    "text": ("text", "text_delta", "text"),
    "thinking": ("thinking", "thinking_delta", "thinking"),
}
"""Kinds of blocks that come in pieces: their field, the delta's type, the delta's field."""


def event(kind: str, **fields: object) -> bytes:
    """One event, framed."""
    return framed(dumps({"type": kind, **fields}), kind)


def message_start(id: str, model: str, usage: Usage) -> bytes:  # noqa: A002 - the field's name
    """The answer begins."""
    message: dict[str, object] = {
        "id": id,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": messages_report(usage),
    }
    return event("message_start", message=message)


def block_start(index: int, block: Mapping[str, object]) -> bytes:
    """A block of content begins, as yet empty."""
    return event("content_block_start", index=index, content_block=block)


def block_delta(index: int, kind: str, **fields: object) -> bytes:
    """A piece of a block."""
    return event("content_block_delta", index=index, delta={"type": kind, **fields})


def block_stop(index: int) -> bytes:
    """A block is whole."""
    return event("content_block_stop", index=index)


def message_delta(stop_reason: str, stop_sequence: str | None, usage: Usage) -> bytes:
    """Why the answer ended, and what it took in all."""
    delta = {"stop_reason": stop_reason, "stop_sequence": stop_sequence}
    return event("message_delta", delta=delta, usage=messages_report(usage))


def whole_as_data(body: bytes) -> Iterator[bytes]:
    """A whole answer as the data of its events. Raises ModelReplyMalformed."""
    try:
        reply: Any = loads(body)
        head = {**reply, "content": [], "stop_reason": None, "stop_sequence": None}
        yield dumps({"type": "message_start", "message": head})
        for index, block in enumerate(reply["content"]):
            yield from _block(index, dict(block))
        delta = {"stop_reason": reply.get("stop_reason"), "stop_sequence": reply.get("stop_sequence")}
        yield dumps({"type": "message_delta", "delta": delta, "usage": reply.get("usage") or {}})
        yield b'{"type":"message_stop"}'
    except (JsonFault, LookupError, TypeError, ValueError, AttributeError) as error:
        raise ModelReplyMalformed(f"the answer is no message: {error!r}") from None


def _block(index: int, block: dict[str, Any]) -> Iterator[bytes]:
    start, deltas = dict(block), []
    kind = block.get("type")
    if kind in _TEXTS:
        name, delta, piece = _TEXTS[kind]
        start[name] = ""
        deltas.append({"type": delta, piece: block.get(name, "")})
        if "signature" in block:
            start["signature"] = ""
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
    elif kind == "tool_use":
        start["input"] = {}
        deltas.append({"type": "input_json_delta", "partial_json": dumps(block.get("input", {})).decode()})
    yield dumps({"type": "content_block_start", "index": index, "content_block": start})
    for each in deltas:
        yield dumps({"type": "content_block_delta", "index": index, "delta": each})
    yield dumps({"type": "content_block_stop", "index": index})
