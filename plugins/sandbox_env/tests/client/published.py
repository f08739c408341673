"""A service that speaks the published contract and nothing else, and that fails when it is told to."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Fault = Callable[[web.Request], web.StreamResponse | None]


@dataclass
class Published:
    """What it was asked, and what it does instead of answering."""

    url: str = ""
    """Where it is."""
    extends: bool = False
    """It has /v2, as ours."""
    waits: bool = True
    """It has waits on the server."""
    faults: list[tuple[str, int | None]] = field(default_factory=list)
    """`METHOD /path`'s next answers: a status, or None for a connection that breaks after the work."""
    asked: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    """Method, path and body of every request."""

    def bodies(self, method: str, path: str) -> list[dict[str, Any]]:
        """Bodies of the requests to one call."""
        return [body for one, where, body in self.asked if (one, where) == (method, path)]


@asynccontextmanager
async def published(**options: Any) -> AsyncIterator[Published]:
    """Serve until left."""
    state = Published(**options)

    async def answer(request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        state.asked.append((request.method, request.path, json.loads(raw) if raw else {}))
        for place, (call, status) in enumerate(state.faults):
            if call == f"{request.method} {request.path}":
                del state.faults[place]
                if status is None:
                    assert request.transport is not None
                    request.transport.abort()
                    return web.Response()
                return web.json_response({"detail": "not now"}, status=status, headers={"Retry-After": "0"})
        return _answer(state, request)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    state.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield state
    finally:
        await runner.cleanup()


def _answer(state: Published, request: web.Request) -> web.Response:
    sandbox = {"sandbox_id": "one", "namespace": "n", "image": "i", "status": "ready", "timeout": 60}
    job = {"job_id": "j", "sandbox_id": "one", "command": "c", "status": "succeeded", "stdout": "ran",
           "stderr": "", "exit_code": 0, "created_at": 1.0}  # fmt: skip
    answers: dict[str, object] = {
        "POST /sandboxes": {**sandbox, "status": "pending"},
        "GET /sandboxes/one": sandbox,
        "DELETE /sandboxes/one": {"status": "deleted", "sandbox_id": "one"},
        "POST /sandboxes/one/exec": job,
        "GET /jobs/j": job,
        "GET /health": {"status": "ok"},
    }
    if state.waits:
        answers["GET /sandboxes/one/wait"] = sandbox
        answers["GET /jobs/j/wait"] = job
    if state.extends:
        answers["GET /v2/capabilities"] = {"provider": "p", "capabilities": {}}
    said = answers.get(f"{request.method} {request.path}")
    return web.json_response({"detail": "Not Found"}, status=404) if said is None else web.json_response(said)
