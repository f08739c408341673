"""A real model server of every dialect whose behaviour a test chooses, request by request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Act = Callable[["Asked"], Awaitable[web.StreamResponse]]


@dataclass
class Asked:
    """One request as the server saw it."""

    request: web.Request
    body: dict[str, Any]
    raw: bytes


def completion(
    text: str | None = "hello", *, calls: Iterable[tuple[str, str, str]] = (), finish: str = "", **extra: Any
) -> dict[str, Any]:
    """A whole answer; `calls` are (id, name, arguments)."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    made = [
        {"id": name, "type": "function", "function": {"name": tool, "arguments": arguments}}
        for name, tool, arguments in calls
    ]
    if made:
        message["tool_calls"] = made
    choice = {"index": 0, "message": message, "finish_reason": finish or ("tool_calls" if made else "stop")}
    choice |= extra.pop("choice", {})
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [choice],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
        **extra,
    }


def says(text: str | None = "hello", **options: Any) -> Act:
    """Answer with a completion."""

    async def act(asked: Asked) -> web.StreamResponse:
        return web.json_response(completion(text, **options))

    return act


def fails(status: int, body: object = None, **headers: str) -> Act:
    """Answer with an error."""

    async def act(asked: Asked) -> web.StreamResponse:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        words = {"error": {"message": f"status {status}"}} if body is None else body
        return web.json_response(words, status=status, headers=named)

    return act


def sends(body: bytes, *, kind: str = "application/json", status: int = 200) -> Act:
    """Answer with exact bytes."""

    async def act(asked: Asked) -> web.StreamResponse:
        return web.Response(body=body, content_type=kind, status=status)

    return act


def streams(
    *payloads: object, done: bool = True, pause: asyncio.Event | None = None, reset: bool = False
) -> Act:
    """Answer with events: dicts as JSON, bytes as they are. Waits for `pause` after the first."""

    async def act(asked: Asked) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(asked.request)
        for place, payload in enumerate(payloads):
            if isinstance(payload, bytes):
                await response.write(payload)
            else:
                await response.write(b"data: " + json.dumps(payload).encode() + b"\n\n")
            if pause is not None and place == 0:
                await pause.wait()
        if reset:
            assert asked.request.transport is not None
            asked.request.transport.close()
            return response
        if done:
            await response.write(b"data: [DONE]\n\n")
        await response.write_eof()
        return response

    return act


def chunk(delta: dict[str, Any], finish: str | None = None, **extra: Any) -> dict[str, Any]:
    """One piece of a streamed answer."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish, **extra.pop("choice", {})}
    return {
        "id": "c",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [choice],
        **extra,
    }


def stalls(forever: asyncio.Event) -> Act:
    """Never answer; `forever` is set when the client leaves."""

    async def act(asked: Asked) -> web.StreamResponse:
        try:
            await asyncio.Event().wait()
        finally:
            forever.set()
        raise AssertionError("unreachable")

    return act


def resets() -> Act:
    """Close the connection without an answer."""

    async def act(asked: Asked) -> web.StreamResponse:
        assert asked.request.transport is not None
        asked.request.transport.close()
        return web.Response()

    return act


@dataclass
class ModelServer:
    """Plays `plan` in order, then `otherwise` for ever."""

    plan: list[Act] = field(default_factory=list)
    otherwise: Act = field(default_factory=says)
    asked: list[Asked] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0
    url: str = ""
    _runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Listen on a free port."""
        app = web.Application(client_max_size=1 << 30)
        for path in ("chat/completions", "responses", "messages", "messages/count_tokens"):
            app.router.add_post(f"/v1/{path}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=1.0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"

    async def stop(self) -> None:
        """Close."""
        assert self._runner is not None
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        asked = Asked(request, json.loads(raw), raw)
        self.asked.append(asked)
        act = self.plan.pop(0) if self.plan else self.otherwise
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            return await act(asked)
        finally:
            self.in_flight -= 1
