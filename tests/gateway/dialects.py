"""The dialects as one table, for tests that hold of each. A new one is one row."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from orchard_core import Dialect

from .client import Answer, Client, user
from .model_server import chunk, completion

Json = dict[str, Any]

CHAT = completion()
CHAT_EVENTS = (
    chunk({"role": "assistant", "content": "hel"}),
    chunk({"content": "lo"}),
    chunk({}, "stop"),
)


@dataclass(frozen=True)
class Spoken:
    """How one dialect is spoken, and by whom: a server of its own, or one of chat."""

    dialect: Dialect
    path: str
    asks: Callable[[str], Json]
    """The fields that say something."""
    listed: str
    """Name of the field that lists what is said."""
    answer: Json
    """A whole answer of a server that speaks it."""
    events: Sequence[Json]
    """The same, streamed."""
    native: bool = True
    header: str = "Authorization"
    extra: Json = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.dialect if self.native else f"{self.dialect}-over-chat"

    @property
    def served(self) -> set[Dialect]:
        """What the server speaks."""
        return {self.dialect} if self.native else {Dialect.CHAT}

    @property
    def url(self) -> str:
        """Where a request ends up at the server."""
        return f"/v1{self.path}" if self.native else "/v1/chat/completions"

    def body(self, text: str = "go", **fields: Any) -> Json:
        """A request."""
        return {"model": "m", **self.extra, **self.asks(text), **fields}

    async def post(self, client: Client, body: object, *, key: str | None = None) -> Answer:
        """Send bytes as they are, anything else as JSON."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        given = client.endpoint.api_key if key is None else key
        headers = {self.header: given if self.header == "x-api-key" else f"Bearer {given}"}
        async with client.http.post(client.endpoint.base_url + self.path, data=data, headers=headers) as got:
            return Answer(got.status, await got.read(), got.headers)

    def message(self, body: Any) -> str:
        """The words of an error; raises unless it has this dialect's shape."""
        if self.dialect is Dialect.MESSAGES:
            assert body["type"] == "error"
            assert body["error"].keys() == {"type", "message"}
        else:
            assert body.keys() == {"error"}
            assert body["error"].keys() == {"message", "type", "param", "code"}
        message: str = body["error"]["message"]
        return message

    def last_message(self, answer: Answer) -> str:
        """The words of the error that ends a stream."""
        last = list(events_of(answer.raw))[-1]
        if self.dialect is Dialect.RESPONSES:
            assert last["type"] in ("error", "response.failed")
            error = last["response"]["error"] if last["type"] == "response.failed" else last
            return str(error["message"])
        return self.message(last)


def events_of(raw: bytes) -> Iterator[Any]:
    """The data of each event, all of it well framed."""
    assert raw.endswith(b"\n\n"), raw[-80:]
    for block in raw.decode().removesuffix("\n\n").split("\n\n"):
        lines = [line.partition(": ") for line in block.split("\n")]
        assert {name for name, _, _ in lines} <= {"event", "data"}, block
        data = "\n".join(value for name, _, value in lines if name == "data")
        yield data if data == "[DONE]" else _parsed(data)


def _parsed(data: str) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return json.loads(data)  # takes lone surrogates, and less depth


_MESSAGE: Json = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "m",
    "content": [{"type": "text", "text": "hello"}], "stop_reason": "end_turn", "stop_sequence": None,
    "usage": {"input_tokens": 10, "output_tokens": 5},
}  # fmt: skip
_TEXT = {"type": "content_block_delta", "index": 0}
_MESSAGE_EVENTS: tuple[Json, ...] = (
    {"type": "message_start", "message": {**_MESSAGE, "content": [], "stop_reason": None}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {**_TEXT, "delta": {"type": "text_delta", "text": "hel"}},
    {**_TEXT, "delta": {"type": "text_delta", "text": "lo"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}},
    {"type": "message_stop"},
)
_ITEM: Json = {
    "type": "message", "id": "i", "role": "assistant", "status": "completed",
    "content": [{"type": "output_text", "text": "hello", "annotations": []}],
}  # fmt: skip
_RESPONSE: Json = {
    "id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "completed",
    "output": [_ITEM], "usage": {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15},
}  # fmt: skip
_OPEN = {**_RESPONSE, "status": "in_progress", "output": [], "usage": None}
_PART = {"item_id": "i", "output_index": 0, "content_index": 0}
_RESPONSE_EVENTS: tuple[Json, ...] = (
    {"type": "response.created", "response": _OPEN},
    {"type": "response.output_item.added", "output_index": 0, "item": {**_ITEM, "content": []}},
    {"type": "response.content_part.added", **_PART, "part": {"type": "output_text", "text": ""}},
    {"type": "response.output_text.delta", **_PART, "delta": "hel"},
    {"type": "response.output_text.delta", **_PART, "delta": "lo"},
    {"type": "response.output_item.done", "output_index": 0, "item": _ITEM},
    {"type": "response.completed", "response": _RESPONSE},
)


def _said(text: str) -> Json:
    return {"messages": [user(text)]}


def _input(text: str) -> Json:
    return {"input": [{"type": "message", "role": "user", "content": text}]}


DIALECTS = (
    Spoken(Dialect.CHAT, "/chat/completions", _said, "messages", CHAT, CHAT_EVENTS),
    Spoken(Dialect.RESPONSES, "/responses", _input, "input", _RESPONSE, _RESPONSE_EVENTS),
    Spoken(Dialect.RESPONSES, "/responses", _input, "input", CHAT, CHAT_EVENTS, native=False),
    Spoken(
        Dialect.MESSAGES, "/messages", _said, "messages", _MESSAGE, _MESSAGE_EVENTS,
        header="x-api-key", extra={"max_tokens": 9},
    ),
    Spoken(
        Dialect.MESSAGES, "/messages", _said, "messages", CHAT, CHAT_EVENTS,
        native=False, header="x-api-key", extra={"max_tokens": 9},
    ),
)  # fmt: skip
"""Each dialect to a server of its own, and, but for chat, to one of chat."""
