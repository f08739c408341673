"""One streamed chat answer as the events of a response."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from orchard_core.errors import ModelReplyMalformed
from orchard_core.gateway.chat.stream import ChatAssembler
from orchard_core.gateway.faults import Fault
from orchard_core.gateway.json_text import JsonFault, dumps, loads
from orchard_core.gateway.reasoning import reasoning_of
from orchard_core.gateway.responses import made
from orchard_core.gateway.responses.answer import rest
from orchard_core.gateway.responses.carried import Carried
from orchard_core.gateway.responses.made import Item, new_id, tool_of
from orchard_core.gateway.responses.opened import Event, OpenCall, Opened, OpenMessage, OpenReasoning
from orchard_core.gateway.sse import framed


def frame(event: Event, number: int) -> bytes:
    """One event as it travels."""
    kind, fields = event
    return framed(dumps({"type": kind, "sequence_number": number, **fields}), kind)


class ResponseEvents:
    """Honours `EventTranslator`. One item is open at a time, as the API has it: reasoning, text, calls."""

    def __init__(self, notes: Mapping[str, object]) -> None:
        self._notes = notes
        self._chat = ChatAssembler(frozenset(), usage_wanted=True)
        self._head: Item = {"id": new_id("resp")}
        self._items: list[Item] = []
        self._open: Opened | None = None
        self._kind = ""
        self._spoke = False
        self._call = -1
        self._calls: dict[int, str] = {}
        self._usage: object = None
        self._finish: object = None
        self._number = 0
        self._out: list[bytes] = []

    def feed(self, payload: bytes) -> bytes:
        """One chunk in, the events it makes out. Raises ModelReplyMalformed."""
        self._chat.take(payload)
        try:
            self._take(loads(payload))
        except (JsonFault, LookupError, TypeError, AttributeError) as error:
            raise ModelReplyMalformed(
                f"an event of the model server's stream is not a completion chunk: {error!r}",
                hint="the stream was cut or changed on its way: try again, or call without stream",
            ) from None
        return self._taken()

    def end(self) -> bytes:
        """What completes the response."""
        if not self._number:
            self._begin({})
        if not self._items and self._open is None:
            self._switch("text", OpenMessage(0))
        self._close()
        message = loads(self._chat.answer().message or '{"role":"assistant"}')
        for place, call in zip(sorted(self._calls), message.get("tool_calls", ()), strict=True):
            call["id"] = self._calls[place]
        for item in rest(message, self._items):
            said = {"output_index": len(self._items), "item": item}
            self._send([("response.output_item.added", said), ("response.output_item.done", said)])
            self._items.append(item)
        ended = made.state(self._finish, self._usage)
        self._send([(f"response.{ended['status']}", {"response": self._response(**ended)})])
        return self._taken()

    def failed(self, fault: Fault) -> bytes:
        """A response that failed."""
        return made.failed(fault, self._head, self._number)

    def _take(self, chunk: dict[str, Any]) -> None:
        if not self._number:
            self._begin(chunk)
        self._usage = chunk.get("usage") or self._usage
        for choice in (chunk.get("choices") or ())[:1]:
            self._delta(choice.get("delta") or {})
            self._finish = choice.get("finish_reason") or self._finish

    def _begin(self, chunk: Mapping[str, Any]) -> None:
        self._head = {**chunk, "id": self._head["id"]}
        self._send([("response.created", {"response": self._response()})])
        self._send([("response.in_progress", {"response": self._response()})])

    def _delta(self, delta: Mapping[str, Any]) -> None:
        if (reasoning := reasoning_of(delta)) is not None:
            self._reasoning(*reasoning)
        for kind in ("content", "refusal"):
            piece = delta.get(kind)
            if isinstance(piece, str) and piece:
                if self._kind != kind:
                    self._resume(kind)
                    self._switch(kind, OpenMessage(len(self._items), refusal=kind == "refusal"))
                self._piece(piece)
        for call in delta.get("tool_calls") or ():
            self._called(call)

    def _reasoning(self, name: str, piece: str) -> None:
        if self._kind != name:
            self._close()
            carried = Carried(name=name, joins=bool(self._items))
            self._switch(name, OpenReasoning(len(self._items), carried))
        self._piece(piece)

    def _resume(self, kind: str) -> None:
        """Text that comes out of its order would look like another answer: a mark says that it is not."""
        self._close()
        if self._spoke:
            self._switch("mark", OpenReasoning(len(self._items), Carried(joins=True)))
            self._close()

    def _called(self, call: Mapping[str, Any]) -> None:
        index, function = int(call.get("index") or 0), call.get("function") or {}
        if self._kind != "call" or index != self._call:
            if index in self._calls:
                raise ModelReplyMalformed(
                    "the model server goes on with a tool call after it began the next part of its answer",
                    hint="call without stream",
                )
            self._calls[index] = call.get("id") or new_id("call")
            self._close()
            opened = OpenCall(len(self._items), self._calls[index], tool_of(function["name"], self._notes))
            self._switch("call", opened)
            self._call = index
        if function.get("arguments"):
            self._piece(function["arguments"])

    def _switch(self, kind: str, opened: Opened) -> None:
        self._close()
        self._kind, self._open = kind, opened
        self._spoke = self._spoke or isinstance(opened, OpenMessage)
        self._send(opened.begin())

    def _close(self) -> None:
        if self._open is not None:
            self._send(self._open.end())
            self._items.append(self._open.item())
        self._kind, self._open = "", None

    def _piece(self, piece: str) -> None:
        assert self._open is not None
        self._send(self._open.take(piece))

    def _response(self, **state: object) -> Item:
        return made.response(self._head, self._items, **state)

    def _send(self, events: Iterable[Event]) -> None:
        for event in events:
            self._out.append(frame(event, self._number))
            self._number += 1

    def _taken(self) -> bytes:
        out, self._out = b"".join(self._out), []
        return out
