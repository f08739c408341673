"""A streamed chat completion as the events of a messages answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from orchard_core.gateway.faults import Fault
from orchard_core.gateway.json_text import loads
from orchard_core.gateway.messages.answering import new_id, stop_of, texts_of, tool_use
from orchard_core.gateway.messages.events import (
    PING,
    STOP,
    block_delta,
    block_start,
    block_stop,
    message_delta,
    message_start,
)
from orchard_core.gateway.messages.faults import messages_failed
from orchard_core.gateway.messages.signatures import signature_of
from orchard_core.gateway.reasoning import reasoning_of
from orchard_core.gateway.usage import chat_usage
from orchard_core.types.model import Usage


@dataclass(slots=True, kw_only=True)
class _Call:
    """A tool call: its block is open from its name to the end of the answer, for pieces may be mixed."""

    index: int | None = None
    """The block's place; None while the name is not known."""
    fields: dict[str, Any] = field(default_factory=dict)
    """Its id and name so far."""
    waiting: list[str] = field(default_factory=list)
    """Arguments that came before the name."""


class MessagesEvents:
    """One streamed answer."""

    def __init__(self, notes: Mapping[str, object]) -> None:
        self._notes = notes
        self._begun = False
        self._id = new_id()
        self._next = 0
        self._open: tuple[str, int] | None = None
        self._reasoning = ""
        self._calls: dict[int, _Call] = {}
        self._usage: Usage | None = None
        self._last: Mapping[str, Any] = {}

    def feed(self, payload: bytes) -> bytes:
        """One chunk's data in, framed events out. Raises whatever a chunk of another shape leads to;
        `TranslatingCodec` makes one error of it."""
        return b"".join(self._chunk(loads(payload)))

    def _chunk(self, chunk: Mapping[str, Any]) -> Iterator[bytes]:
        self._usage = chat_usage(chunk.get("usage")) or self._usage
        yield from self._begin(chunk)
        choices = chunk.get("choices")
        if not choices:
            return
        choice = choices[0]
        if choice.get("finish_reason"):
            self._last = choice
        delta = choice.get("delta") or {}
        if (reasoning := reasoning_of(delta)) is not None:
            self._reasoning, text = reasoning
            yield from self._piece("thinking", text)
        for text in texts_of(delta):
            yield from self._piece("text", text)
        for call in delta.get("tool_calls") or ():
            yield from self._call(call)

    def _begin(self, chunk: Mapping[str, Any]) -> Iterator[bytes]:
        if not self._begun:
            self._begun = True
            yield message_start(self._id, str(chunk.get("model") or ""), self._usage or Usage())
            yield PING

    def _piece(self, kind: str, text: str) -> Iterator[bytes]:
        """A piece of text or of reasoning."""
        if self._open is None or self._open[0] != kind:
            yield from self._close()
            self._open = (kind, self._place())
            empty = {"signature": ""} if kind == "thinking" else {}
            yield block_start(self._open[1], {"type": kind, kind: "", **empty})
        yield block_delta(self._open[1], f"{kind}_delta", **{kind: text})

    def _place(self) -> int:
        self._next += 1
        return self._next - 1

    def _close(self) -> Iterator[bytes]:
        """The block of text or reasoning is whole."""
        if self._open is None:
            return
        kind, index = self._open
        if kind == "thinking":
            yield block_delta(index, "signature_delta", signature=signature_of(self._reasoning))
        yield block_stop(index)
        self._open = None

    def _call(self, piece: Mapping[str, Any]) -> Iterator[bytes]:
        """A piece of a tool call."""
        function = piece.get("function") or {}
        place = int(piece.get("index") or 0)
        call = self._calls.setdefault(place, _Call())
        for name, value in (("id", piece.get("id")), ("name", function.get("name"))):
            if value:
                call.fields[name] = value
        if function.get("arguments"):
            call.waiting.append(str(function["arguments"]))
        if call.index is None and "name" in call.fields:
            yield from self._close()
            yield from self._start(call, place)
        if call.index is not None and call.waiting:
            yield block_delta(call.index, "input_json_delta", partial_json="".join(call.waiting))
            call.waiting.clear()

    def _start(self, call: _Call, place: int) -> Iterator[bytes]:
        call.index = self._place()
        made = {"id": call.fields.get("id"), "function": {"name": call.fields.get("name")}}
        yield block_start(call.index, tool_use(made, f"{self._id}_{place}"))

    def end(self) -> bytes:
        """What ends every block, and the answer."""
        return b"".join(self._end())

    def failed(self, fault: Fault) -> bytes:
        """An `error` event."""
        return messages_failed(fault)

    def _end(self) -> Iterator[bytes]:
        yield from self._begin({})
        yield from self._close()
        started = [call.index for call in self._calls.values() if call.index is not None]
        for index in started:
            yield block_stop(index)
        reason, sequence = stop_of(self._last, self._notes, called=bool(started))
        yield message_delta(reason, sequence, self._usage or Usage())
        yield STOP
