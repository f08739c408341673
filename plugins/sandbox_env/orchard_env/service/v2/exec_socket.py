"""A command over a WebSocket: its events out, its input and signals in.

The first frame of the client starts or attaches: an ExecRequest, or `{"attach": ID, "since": "OUT-ERR"}`.
Later ones are `{"stdin": TEXT}` in the encoding asked for, `{"eof": true}` and `{"signal": 15}`. The
service sends the events of `exec/stream`, one JSON object a frame, with `event` and `since`; the last is
`exit` or `error`."""

from __future__ import annotations

import asyncio
import base64
import binascii
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import orjson
from pydantic import Field, ValidationError
from starlette.websockets import WebSocket, WebSocketDisconnect

from orchard_core import AgentClient, OrchardError, Record
from orchard_env.service.agent_words import agent_words
from orchard_env.service.entry import Entry
from orchard_env.service.faults import RequestInvalid, RequestTooSlow
from orchard_env.service.http import caller
from orchard_env.service.noting import note
from orchard_env.service.problems import problem
from orchard_env.service.reach import reach
from orchard_env.service.seams import Scope, Work
from orchard_env.service.services import Services
from orchard_env.service.turns import held_briefly
from orchard_env.service.v2.events import Cursors, exec_events
from orchard_env.service.v2.exec import as_text
from orchard_env.service.v2.exec_command import begin, new_exec_id
from orchard_env.service.v2.feed import Feed
from orchard_env.service.v2.sse import said
from orchard_env.types.v2_exec import Encoding, ExecId, ExecRequest

_FIRST_S = 30.0
_FRAME_MAX = 4 << 20
_TAKE_S = 75.0


class Attach(Record):
    """The first frame of a client that comes back."""

    attach: ExecId
    """The command's id."""
    since: str = ""
    """`since` of the last event that was read."""
    encoding: Encoding = "utf-8"
    """Of output and input."""


class Sent(Record):
    """A later frame: one of these."""

    stdin: str | None = None
    """Input."""
    eof: bool = False
    """The end of the input."""
    signal: int | None = Field(default=None, ge=1, le=64)
    """A signal for the command's process group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A command that this socket is about."""

    exec_id: str
    """Its id."""
    since: Cursors
    """What the client has of its output."""
    encoding: Encoding
    """Of output and input."""


class ExecSocket:
    """Serves WebSockets at `/v2/sandboxes/{sandbox_id}/exec/stream`."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def __call__(self, socket: WebSocket) -> None:
        """The whole life of one socket. The command goes on when the client leaves."""
        socket.scope["query_string"] = b""  # it may hold a key, and the server logs it as it accepts
        await socket.accept()
        try:
            entry = await reach(self._services, socket, Scope.USE)
            first = await _frame(socket, _FIRST_S)
            async with entry.lent() as client:
                with agent_words():
                    begun = await self._begun(socket, entry, client, first)
                    await _run(socket, entry, client, begun)
            await socket.close()
        except OrchardError as error:
            with suppress(RuntimeError, WebSocketDisconnect):
                told = orjson.loads(problem(error, socket.scope.get("request_id", "")).body)
                await socket.send_text(orjson.dumps({"event": "error", **told}).decode())
                await socket.close(1008)
        except (WebSocketDisconnect, TimeoutError):
            return

    async def _begun(self, socket: WebSocket, entry: Entry, client: AgentClient, first: Any) -> Begun:
        if isinstance(first, dict) and "attach" in first:
            wanted = checked(Attach, first)
            await client.run_status(wanted.attach)
            return Begun(exec_id=wanted.attach, since=Cursors.parse(wanted.since), encoding=wanted.encoding)
        request = checked(ExecRequest, first)
        exec_id = request.id or new_exec_id()
        if request.stdin is None:
            request = request.model_copy(update={"stdin_stream": True})
        note(self._services, socket, "exec", entry.id, command=as_text(request))
        turn = self._services.admission.enter(caller(socket, Scope.USE), Work.EXEC)
        async with held_briefly(turn):
            await begin(client, request, exec_id=exec_id)
        return Begun(exec_id=exec_id, since=Cursors(), encoding=request.encoding)


async def _run(socket: WebSocket, entry: Entry, client: AgentClient, begun: Begun) -> None:
    """Until the command has ended or the client has left."""
    feed = Feed(client, begun.exec_id)
    out = asyncio.create_task(_out(socket, entry, client, begun))
    into = asyncio.create_task(_into(socket, client, begun, feed))
    fed = asyncio.create_task(feed.run())
    try:
        done, _ = await asyncio.wait((out, into, fed), return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in (out, into, fed):
            task.cancel()
        await asyncio.gather(out, into, fed, return_exceptions=True)


async def _out(socket: WebSocket, entry: Entry, client: AgentClient, begun: Begun) -> None:
    events = exec_events(client, entry.id, begun.exec_id, since=begun.since, encoding=begun.encoding)
    async with aclosing(events) as told:
        async for event in told:
            if event.kind != "quiet":
                async with asyncio.timeout(_TAKE_S):
                    await socket.send_text(said(event).decode())


async def _into(socket: WebSocket, client: AgentClient, begun: Begun, feed: Feed) -> None:
    """Frames of the client. Input waits for the command to read it; signals do not wait for input."""
    while True:
        sent = checked(Sent, await _frame(socket, None))
        if sent.stdin is not None:
            await feed.add(_bytes(sent.stdin, begun.encoding))
        if sent.eof:
            await feed.add(None)
        if sent.signal is not None:
            await client.process(begun.exec_id).signal(sent.signal)


async def _frame(socket: WebSocket, within_s: float | None) -> Any:
    """The next frame's JSON. Raises WebSocketDisconnect, RequestInvalid, RequestTooSlow."""
    try:
        async with asyncio.timeout(within_s):
            text = await socket.receive_text()
    except TimeoutError:
        raise RequestTooSlow(f"no frame came for {within_s:g} s", hint="send an ExecRequest first") from None
    except KeyError:
        raise RequestInvalid("a frame is binary", hint="send JSON, as text") from None
    if len(text) > _FRAME_MAX:
        raise RequestInvalid("a frame is over 4 MiB", hint="send input in smaller pieces")
    try:
        return orjson.loads(text)
    except ValueError:
        raise RequestInvalid("a frame is no JSON", hint="see the page rest-v2.md") from None


_Kind = TypeVar("_Kind", bound=Record)


def checked(kind: type[_Kind], value: Any) -> _Kind:
    """A frame as one of our records. Raises RequestInvalid."""
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, fault["loc"])) or "the frame"
        raise RequestInvalid(
            f"{where}: {fault['msg']}", hint=f"fields: {', '.join(kind.model_fields)}"
        ) from None


def _bytes(text: str, encoding: Encoding) -> bytes:
    if encoding == "utf-8":
        return text.encode("utf-8", "replace")
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise RequestInvalid("stdin is not base64, though encoding says so") from None
