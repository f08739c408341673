"""Putting a streamed response together while it passes."""

from __future__ import annotations

from typing import Any, TypeVar

from orchard_core.errors import ModelReplyMalformed
from orchard_core.gateway.dialect import Answer
from orchard_core.gateway.faults import Fault
from orchard_core.gateway.json_text import JsonFault, dumps_ascii, loads
from orchard_core.gateway.responses import made
from orchard_core.gateway.responses.made import new_id
from orchard_core.gateway.responses.reply import failure, finish_of, message_of, response_usage
from orchard_core.gateway.sse import framed

T = TypeVar("T")

_ENDS = frozenset({"response.completed", "response.incomplete"})
_PIECES = {
    "response.output_text.delta": ("content", "text"),
    "response.refusal.delta": ("content", "refusal"),
    "response.reasoning_text.delta": ("content", "text"),
    "response.reasoning_summary_text.delta": ("summary", "text"),
    "response.function_call_arguments.delta": ("", "arguments"),
    "response.custom_tool_call_input.delta": ("", "input"),
}
"""Where a piece belongs in its item: the list it stands in, and the field."""


class ResponsesAssembler:
    """One streamed response. Its events pass as they are."""

    def __init__(self) -> None:
        self._items: dict[int, dict[str, Any]] = {}
        self._pieces: dict[tuple[int, str, int, str], list[str]] = {}
        self._ended: dict[str, Any] | None = None
        self._last = b""
        self._head: dict[str, Any] = {"id": new_id("resp")}
        self._number = 0
        self._started = False

    def feed(self, payload: bytes) -> bytes | None:
        """One event. The last one is held for `end`. Raises ModelReplyMalformed, and another ModelError when
        it reports an error."""
        try:
            event = loads(payload)
            kind = event["type"]
            if kind in ("error", "response.failed"):
                raise failure(event.get("error") or event.get("response", {}).get("error") or event)
            self._take(kind, event)
            self._count(event)
        except (JsonFault, LookupError, TypeError, AttributeError) as error:
            raise ModelReplyMalformed(
                f"an event of the model server's stream is not one of a response: {error!r}",
                hint="the stream was cut or changed on its way: try again, or call without stream",
            ) from None
        passed = framed(payload, str(kind))
        if kind not in _ENDS:
            return passed
        self._last = passed
        return None

    def end(self) -> bytes:
        """The event that ends it."""
        return self._last

    def failed(self, fault: Fault) -> bytes:
        """The response that has begun, failed."""
        return made.failed(fault, self._head, self._number)

    def _count(self, event: dict[str, Any]) -> None:
        """What an event of our own needs to go on with."""
        number, response = event.get("sequence_number"), event.get("response")
        self._number = number + 1 if isinstance(number, int) else self._number + 1
        if isinstance(response, dict) and isinstance(response.get("id"), str):
            self._head = {**response, "created": response.get("created_at")}

    def answer(self) -> Answer:
        """What has come so far."""
        ended = self._ended
        items = ended["output"] if ended is not None else None
        if not items:  # a server may leave the items out of its last event
            items = [self._item(place) for place in sorted(self._items)]
        return Answer(
            message=message_of(dumps_ascii(items)) if self._started else None,
            finish_reason=None if ended is None else finish_of(ended, items),
            usage=None if ended is None else response_usage(ended.get("usage")),
        )

    def _take(self, kind: str, event: dict[str, Any]) -> None:
        if kind in _ENDS:
            self._started = True
            self._ended = {**event["response"], "status": kind.removeprefix("response.")}
            if not isinstance(self._ended.get("output", []), list):
                raise JsonFault("`output` must be an array")
            self._ended.setdefault("output", [])
        elif kind in ("response.output_item.added", "response.output_item.done"):
            self._started = True
            place = _of(int, event["output_index"])
            self._items[place] = dict(_of(dict, event["item"]))
            if kind.endswith("done"):
                self._pieces = {key: kept for key, kept in self._pieces.items() if key[0] != place}
        elif kind in _PIECES:
            where, field = _PIECES[kind]
            inner = event.get("content_index", event.get("summary_index", 0)) if where else 0
            at = (_of(int, event["output_index"]), where, _of(int, inner), field)
            self._pieces.setdefault(at, []).append(_of(str, event["delta"]))

    def _item(self, place: int) -> dict[str, Any]:
        """An item as far as it came."""
        item = dict(self._items[place])
        for (owner, where, _, field), pieces in sorted(self._pieces.items()):
            if owner != place:
                continue
            if where:
                item[where] = [
                    *(item.get(where) or []),
                    {"type": _kind(item, where, field), field: "".join(pieces)},
                ]
            else:
                item[field] = "".join(pieces)
        return item


def _of(kind: type[T], value: object) -> T:
    """The value, if it is of that type. Raises TypeError."""
    if not isinstance(value, kind):
        raise TypeError(f"{value!r:.100} should be a {kind.__name__}")
    return value


def _kind(item: dict[str, Any], where: str, field: str) -> str:
    """Type of a part."""
    if where == "summary":
        return "summary_text"
    if item.get("type") == "reasoning":
        return "reasoning_text"
    return "refusal" if field == "refusal" else "output_text"
