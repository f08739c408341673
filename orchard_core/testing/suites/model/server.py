"""A model server that misbehaves as it is told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """How one request is answered."""

    status: int = 200
    """HTTP status."""
    body: bytes | None = None
    """The answer's body; None: a fine chat completion."""
    headers: dict[str, str] = field(default_factory=dict)
    """Added to the answer."""
    hang: bool = False
    """Read the request and never answer."""
    cut: bool = False
    """Close the connection in the middle of the body."""
    events: list[bytes] | None = None
    """Server-sent events to answer with, `data:` payloads; a cut leaves `[DONE]` out."""


@dataclass(slots=True)
class Received:
    """One request as the server saw it."""

    path: str
    """Its target."""
    headers: dict[str, str]
    """Its headers, names in lower case."""
    body: dict[str, Any]
    """Its JSON; empty where it is no object."""


REFUSED = b'{"error": {"message": "the body is not a JSON object", "type": "invalid_request_error"}}'
"""What a real server says of a request that cannot be read."""


class ModelServer:
    """Answers each request with the next behaviour, the last one for ever; refuses what is no JSON object."""

    def __init__(self) -> None:
        self.behaviours: list[Behaviour] = [Behaviour()]
        self.received: list[Received] = []
        self.hung_up = 0
        """Requests whose client left before the answer."""
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        try:
            while (request := await _read(reader)) is not None:
                self.received.append(request)
                if not request.body:
                    behaviour = Behaviour(status=400, body=REFUSED)
                else:
                    behaviour = self.behaviours.pop(0) if len(self.behaviours) > 1 else self.behaviours[0]
                if not await self._answer(behaviour, reader, writer, request):
                    return
        except (OSError, asyncio.IncompleteReadError):
            self.hung_up += 1
        finally:
            writer.close()

    async def _answer(
        self, how: Behaviour, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: Received
    ) -> bool:
        if how.hang:
            await reader.read(1)
            self.hung_up += 1
            return False
        streams = how.events is not None or (how.body is None and request.body.get("stream") is True)
        if streams and how.status == 200:
            return await self._stream(how, writer)
        body = completion() if how.body is None else how.body
        extra = "".join(f"{name}: {value}\r\n" for name, value in how.headers.items())
        head = f"HTTP/1.1 {how.status} X\r\nContent-Length: {len(body)}\r\n{extra}"
        head += "Content-Type: application/json\r\n\r\n"
        writer.write(head.encode() + (body[: len(body) // 2] if how.cut else body))
        await writer.drain()
        return not how.cut

    async def _stream(self, how: Behaviour, writer: asyncio.StreamWriter) -> bool:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        for event in chunks() if how.events is None else how.events:
            writer.write(b": a comment\n\ndata: " + event + b"\r\n\r\n")
            await writer.drain()
        if not how.cut:
            writer.write(b"data: [DONE]\n\n")
            await writer.drain()
        return False


def completion(**fields: Any) -> bytes:
    """A fine chat completion whose usage has cached tokens."""
    body: dict[str, Any] = {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Hello there."},
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": 100,
            "completion_tokens": 7,
            "total_tokens": 107,
            "prompt_tokens_details": {"cached_tokens": 80},
        },
        **fields,
    }
    return json.dumps(body).encode()


def chunks() -> list[bytes]:
    """The same answer as a stream."""

    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return json.dumps({"id": "c", "object": "chat.completion.chunk", "choices": [choice]}).encode()

    usage = json.loads(completion())["usage"]
    return [
        chunk({"role": "assistant", "content": "Hello"}),
        chunk({"content": " there."}),
        chunk({}, "stop"),
        json.dumps({"id": "c", "object": "chat.completion.chunk", "choices": [], "usage": usage}).encode(),
    ]


@asynccontextmanager
async def model_server() -> AsyncIterator[ModelServer]:
    """The server on a free port of the loopback."""
    server = ModelServer()
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/v1"
    try:
        yield server
    finally:
        listener.close()


async def _read(reader: asyncio.StreamReader) -> Received | None:
    head = await reader.readuntil(b"\r\n\r\n") if not reader.at_eof() else b""
    if not head:
        return None
    first, *lines = head.decode("latin-1").strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    data = await reader.readexactly(int(headers.get("content-length", "0")))
    try:
        body = json.loads(data)
    except ValueError:
        body = {}
    return Received(path=first.split(" ")[1], headers=headers, body=body if isinstance(body, dict) else {})
