"""A command's events as server-sent events."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Header, Request
from starlette.responses import StreamingResponse

from orchard_core import OrchardError
from orchard_env.service.agent_words import agent_words
from orchard_env.service.entry import Entry
from orchard_env.service.http import caller
from orchard_env.service.noting import note
from orchard_env.service.problems import problem
from orchard_env.service.seams import Scope, Work
from orchard_env.service.turns import held_briefly
from orchard_env.service.v2.base import EncodingQuery, ExecPath, Routes, SandboxId
from orchard_env.service.v2.events import Cursors, ExecEvent, exec_events
from orchard_env.service.v2.exec import as_text, known_exec
from orchard_env.service.v2.exec_command import begin, new_exec_id
from orchard_env.service.v2.refusals import REFUSALS
from orchard_env.service.v2.route import JsonRoute
from orchard_env.types.v2_exec import Encoding, ExecRequest

LastEventId = Annotated[
    str | None,
    Header(alias="Last-Event-ID", max_length=64, description="`id` of the last event that was read."),
]
_EVENTS: dict[str, Any] = {
    "description": "Events `started`, `stdout`, `stderr`, `exit`, and `error` in place of `exit`.",
    "content": {"text/event-stream": {}},
}
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no", "X-Content-Type-Options": "nosniff"}


class EventRoutes(Routes):
    """`/v2/sandboxes/{sandbox_id}/exec/stream` and `/execs/{exec_id}/events`."""

    def router(self) -> APIRouter:
        """The routes."""
        router = APIRouter(route_class=JsonRoute, tags=["commands"])
        shared: dict[str, Any] = {
            "responses": {**REFUSALS, 200: _EVENTS},
            "response_class": StreamingResponse,
            "response_model": None,
        }
        add = router.add_api_route
        add("/sandboxes/{sandbox_id}/exec/stream", self.run, methods=["POST"], **shared)
        add("/sandboxes/{sandbox_id}/execs/{exec_id}/events", self.events, methods=["GET"], **shared)
        return router

    async def run(
        self,
        request: Request,
        sandbox_id: SandboxId,
        wanted: ExecRequest,
        last_event_id: LastEventId = None,
    ) -> StreamingResponse:
        """Run a command and tell what it says as it says it. It goes on when the reader leaves: come back
        with its id, and Last-Event-ID."""
        entry = await self._entry(request, Scope.USE)
        since = Cursors.parse(last_event_id)
        exec_id = wanted.id or new_exec_id()
        note(self._services, request, "exec", entry.id, command=as_text(wanted))
        turn = self._services.admission.enter(caller(request, Scope.USE), Work.EXEC)
        async with held_briefly(turn), entry.lent() as client:
            with agent_words():
                await begin(client, wanted, exec_id=exec_id)
        return _stream(request, entry, exec_id, since, wanted.encoding)

    async def events(
        self,
        request: Request,
        sandbox_id: SandboxId,
        exec_id: ExecPath,
        encoding: EncodingQuery = "utf-8",
        last_event_id: LastEventId = None,
    ) -> StreamingResponse:
        """The same events of a command that was started before, from the beginning or from Last-Event-ID
        on."""
        entry = await self._entry(request, Scope.READ)
        since = Cursors.parse(last_event_id)
        async with known_exec(entry, exec_id) as client:
            await client.run_status(exec_id)
        return _stream(request, entry, exec_id, since, encoding)


def _stream(
    request: Request, entry: Entry, exec_id: str, since: Cursors, encoding: Encoding
) -> StreamingResponse:
    request_id = request.scope["request_id"]
    return StreamingResponse(
        _lines(entry, exec_id, since, encoding, request_id), media_type="text/event-stream", headers=_HEADERS
    )


async def _lines(
    entry: Entry, exec_id: str, since: Cursors, encoding: Encoding, request_id: str
) -> AsyncIterator[bytes]:
    try:
        async with entry.lent() as client, aclosing(_events(client, entry, exec_id, since, encoding)) as told:
            async for event in told:
                yield b": \n\n" if event.kind == "quiet" else line(event)
    except OrchardError as error:
        yield b"event: error\ndata: " + bytes(problem(error, request_id).body) + b"\n\n"


def _events(
    client: Any, entry: Entry, exec_id: str, since: Cursors, encoding: Encoding
) -> AsyncGenerator[ExecEvent, None]:
    return exec_events(client, entry.id, exec_id, since=since, encoding=encoding)


def line(event: ExecEvent) -> bytes:
    """As it crosses the wire. JSON holds no raw line break, so one `data` line is enough."""
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (event.id.encode(), event.kind.encode(), event.data)


def said(event: ExecEvent) -> bytes:
    """As one JSON object, for a WebSocket."""
    return orjson.dumps({**orjson.loads(event.data), "event": event.kind, "since": event.id})
