"""Putting a streamed messages answer together while it passes."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from orchard_core.errors import ModelReplyMalformed, ModelUnavailable
from orchard_core.gateway.dialect import Answer
from orchard_core.gateway.faults import Fault
from orchard_core.gateway.json_text import JsonFault, ascii_text, dumps_ascii, loads
from orchard_core.gateway.messages.events import STOP
from orchard_core.gateway.messages.faults import messages_failed
from orchard_core.gateway.messages.usage import messages_usage
from orchard_core.gateway.sse import framed
from orchard_core.types.model import Usage

_PIECES = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
    "input_json_delta": ("input", "partial_json"),
}
"""Deltas whose pieces are joined: the block's field, the delta's field."""


class MessagesAssembler:
    """One streamed answer of an upstream that speaks this dialect; each event passes untouched."""

    def __init__(self) -> None:
        self._blocks: dict[int, _Block] = {}
        self._usage: Usage | None = None
        self._stop: str | None = None
        self._started = False

    def feed(self, payload: bytes) -> bytes | None:
        """One event: gather from it and hand it on. The last one is held for `end`."""
        try:
            event = loads(payload)
            kind = event["type"]
            if kind == "error":
                raise ModelUnavailable(
                    f"the model server reported an error in mid-stream: {_words(event.get('error'))}"
                )
            self._take(kind, event)
        except (JsonFault, TypeError, LookupError, AttributeError, ValueError) as fault:
            raise ModelReplyMalformed(
                f"an event of the model server's stream is none of a messages answer: {fault!r}",
                hint="the stream was cut or changed on its way: try again, or call without stream",
            ) from None
        return None if kind == "message_stop" else framed(payload, str(kind))

    def _take(self, kind: object, event: dict[str, Any]) -> None:
        match kind:
            case "message_start":
                self._started = True
                self._usage = messages_usage(event["message"].get("usage"))
            case "content_block_start":
                self._blocks[_index(event)] = _Block(dict(event["content_block"]))
            case "content_block_delta":
                self._blocks[_index(event)].take(event["delta"])
            case "message_delta":
                stop = event["delta"].get("stop_reason")
                self._stop = ascii_text(str(stop)) if stop is not None else self._stop
                self._usage = messages_usage(event.get("usage"), self._usage)
            case _:
                pass  # ping, and whatever is new

    def end(self) -> bytes:
        """The event that ends it."""
        return STOP

    def failed(self, fault: Fault) -> bytes:
        """An `error` event."""
        return messages_failed(fault)

    def answer(self) -> Answer:
        """What has come so far."""
        return Answer(
            message=self._message() if self._started else None, finish_reason=self._stop, usage=self._usage
        )

    def _message(self) -> str:
        content = [self._blocks[index].whole() for index in sorted(self._blocks)]
        return dumps_ascii({"role": "assistant", "content": content})


class _Block:
    """One block in pieces."""

    def __init__(self, start: dict[str, Any]) -> None:
        self.fields = start
        self.pieces: dict[str, list[str]] = {}
        self.lists: dict[str, list[object]] = {}

    def take(self, delta: dict[str, Any]) -> None:
        """A piece; of a kind that is not known, nothing is kept."""
        kind = delta["type"]
        if kind in _PIECES:
            name, piece = _PIECES[kind]
            self.pieces.setdefault(name, []).append(_text(delta[piece]))
        elif kind == "citations_delta":
            self.lists.setdefault("citations", []).append(delta.get("citation"))

    def whole(self) -> dict[str, object]:
        """The block as an unstreamed answer would show it; arguments that are no JSON stay text."""
        joined: dict[str, object] = {name: "".join(parts) for name, parts in self.pieces.items()}
        if "input" in joined:
            with suppress(JsonFault):
                joined["input"] = loads(str(joined["input"])) if joined["input"] else {}
        return {**self.fields, **joined, **self.lists}


def _index(event: dict[str, Any]) -> int:
    return int(event["index"])


def _text(piece: object) -> str:
    if not isinstance(piece, str):
        raise TypeError(f"a piece is {type(piece).__name__}, not text")
    return piece


def _words(error: object) -> str:
    message = error.get("message") if isinstance(error, dict) else error
    return str(message)[:500]
