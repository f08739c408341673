"""A small OpenAI-compatible server that says what it is told and keeps what it was asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from orchard_core import ModelEndpoint


@dataclass(frozen=True, kw_only=True)
class Said:
    """One answer."""

    message: Mapping[str, Any] = field(default_factory=dict)
    """The assistant message."""
    finish: str = "stop"
    """Finish reason."""
    status: int = 200
    """HTTP status; `body` is then the whole answer."""
    body: str | None = None
    """Sent as it is."""
    chunks: Sequence[Mapping[str, Any] | str] | None = None
    """Payloads of a stream."""
    hangs: bool = False
    """Never answers."""


def says(text: str, **fields: Any) -> Said:
    """An answer in words."""
    return Said(message={"role": "assistant", "content": text}, **fields)


def calls(*made: tuple[str, Mapping[str, Any] | str], text: str | None = None, **fields: Any) -> Said:
    """An answer that calls tools; arguments as text need not be JSON."""
    entries = [
        {
            "id": f"c{place}",
            "type": "function",
            "function": {"name": name, "arguments": args if isinstance(args, str) else json.dumps(args)},
        }
        for place, (name, args) in enumerate(made)
    ]
    message = {"role": "assistant", "content": text, "tool_calls": entries}
    return Said(message=message, finish="tool_calls", **fields)


def fails(status: int, message: str, code: str = "") -> Said:
    """A refusal."""
    return Said(status=status, body=json.dumps({"error": {"message": message, "code": code}}))


class ModelServer:
    """Answers request i with answer i."""

    def __init__(self, answers: Sequence[Said]) -> None:
        self._answers = answers
        self.requests: list[dict[str, Any]] = []
        """Bodies, parsed."""
        self.raw: list[bytes] = []
        """The same, as bytes."""
        self.keys: list[str | None] = []
        """Authorization headers."""
        self.endpoint = ModelEndpoint(base_url="", api_key="", model="")

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation of the last request."""
        found: list[dict[str, Any]] = self.requests[-1]["messages"]
        return found

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one request."""
        self.raw.append(await request.read())
        self.requests.append(json.loads(self.raw[-1]))
        self.keys.append(request.headers.get("Authorization"))
        said = self._answers[len(self.requests) - 1]
        if said.hangs:
            await asyncio.Event().wait()
        if said.chunks is not None:
            return await _streamed(request, said.chunks)
        choice = {"index": 0, "message": said.message, "finish_reason": said.finish}
        body = said.body if said.body is not None else json.dumps({"choices": [choice]})
        return web.Response(status=said.status, text=body, content_type="application/json")


async def _streamed(request: web.Request, chunks: Sequence[Mapping[str, Any] | str]) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for chunk in chunks:
        data = chunk if isinstance(chunk, str) else json.dumps(chunk)
        await response.write(f"data: {data}\r\n\r\n".encode())
    return response


@asynccontextmanager
async def model_server(*answers: Said) -> AsyncIterator[ModelServer]:
    """A server on a free port of the loopback."""
    server = ModelServer(answers)
    app = web.Application(client_max_size=1 << 30)
    app.router.add_post("/v1/chat/completions", server.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    server.endpoint = ModelEndpoint(base_url=f"http://127.0.0.1:{port}/v1", api_key="key", model="m")
    try:
        yield server
    finally:
        await runner.cleanup()
