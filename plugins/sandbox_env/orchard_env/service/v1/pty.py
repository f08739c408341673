"""Terminals of v1: a program and its terminal over one WebSocket, ended when the client leaves.

JSON text frames. From the client: `init` once, then `stdin`, `signal`, `resize`, `close`. To it: `ready`,
`stdout`, `exit`, `error`.
"""

from __future__ import annotations

import asyncio
import base64
import signal
from contextlib import suppress
from typing import Any

import orjson
from starlette.websockets import WebSocket, WebSocketDisconnect

from orchard_core import AgentClient, AgentTerminal, OrchardError, PtySize, SandboxError
from orchard_env.service.agent_words import agent_words
from orchard_env.service.faults import RequestInvalid, RequestTooSlow
from orchard_env.service.http import caller
from orchard_env.service.leaving import client_left
from orchard_env.service.noting import note
from orchard_env.service.reach import reach
from orchard_env.service.seams import Scope, Work
from orchard_env.service.services import Services
from orchard_env.service.turns import held_briefly
from orchard_env.service.v1.commands import command_of
from orchard_env.service.v1.pty_frames import Init, Resize, Sent, read_frame
from orchard_env.service.v1.pty_keys import Keys

_INIT_S = 30.0
_TAKE_S = 75.0
_GRACE_S = 2
_REFUSED = 1008


class PtySocket:
    """Serves WebSockets at `/sandboxes/{sandbox_id}/exec/pty`."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def serve(self, socket: WebSocket) -> None:
        """The whole life of one terminal."""
        socket.scope["query_string"] = b""  # it may hold a key, and the server logs it as it accepts
        await socket.accept()
        try:
            entry = await reach(self._services, socket, Scope.USE)
            await entry.ready(self._services.settings.wait_s)
            init = await _first(socket)
            command = " ".join(init.cmd)
            note(self._services, socket, "exec.pty", entry.id, command=command)
            turn = self._services.admission.enter(caller(socket, Scope.USE), Work.EXEC)
            async with held_briefly(turn), entry.lent() as client:
                with agent_words():
                    await _Session(socket, client).run(init)
            await socket.close()
        except OrchardError as error:
            with suppress(RuntimeError, WebSocketDisconnect):
                await _tell(socket, {"type": "error", "message": error.message, "hint": error.hint})
                await socket.close(_REFUSED)
        except (WebSocketDisconnect, TimeoutError):
            return


class _Session:
    """One program and its terminal."""

    def __init__(self, socket: WebSocket, client: AgentClient) -> None:
        self._socket = socket
        self._client = client
        self._keys = Keys()

    async def run(self, init: Init) -> None:
        """Until the program has ended, or the client has left: then it is hung up, whatever becomes of us."""
        size = PtySize(rows=init.rows, cols=init.cols)
        command = command_of(init.cmd, login_shell=init.login_shell)
        process = await self._client.start(command, cwd=init.cwd, env=init.env, pty=size)
        try:
            terminal = await self._client.terminal(process.id, hang_up=True, grace_s=_GRACE_S)
        except BaseException:
            await asyncio.shield(asyncio.ensure_future(process.kill()))
            raise
        try:
            status, _ = await process.status()
            await _tell(self._socket, {"type": "ready", "pid": status["pid"]})
            if await self._served(terminal, process.id):
                ended = await process.wait(_TAKE_S)
                await _tell(self._socket, {"type": "exit", "code": ended.exit_code})
        finally:
            terminal.abort()

    async def _served(self, terminal: AgentTerminal, run_id: str) -> bool:
        """Whether the program ended, and not the client."""
        shows = asyncio.create_task(self._show(terminal))
        types = asyncio.create_task(self._type(terminal))
        obeys = asyncio.create_task(self._obey(run_id))
        leaves = asyncio.create_task(client_left(self._socket.scope))
        try:
            await asyncio.wait((shows, obeys, leaves), return_when=asyncio.FIRST_COMPLETED)
            if shows.done():
                shows.result()
                return True
            if obeys.done():
                obeys.result()
            return False
        finally:
            for task in (tasks := (shows, types, obeys, leaves)):
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _show(self, terminal: AgentTerminal) -> None:
        while piece := await terminal.read():
            async with asyncio.timeout(_TAKE_S):
                await _tell(self._socket, {"type": "stdout", "data": base64.b64encode(piece).decode()})

    async def _type(self, terminal: AgentTerminal) -> None:
        with suppress(SandboxError):  # the program has ended, which the other direction tells
            while True:
                await terminal.write(await self._keys.take())

    async def _obey(self, run_id: str) -> None:
        """Frames of the client, until it closes. Keys wait for the program; signals wait for no keys but
        those of a paste larger than what may wait."""
        process = self._client.process(run_id)
        while True:
            sent = await read_frame(self._socket)
            if isinstance(sent, Sent):
                await self._keys.put(sent.bytes)
            elif isinstance(sent, Resize):
                await process.resize(PtySize(rows=sent.rows, cols=sent.cols))
            elif isinstance(sent, signal.Signals):
                await process.signal(sent)
            elif sent is None:
                return
            else:
                raise RequestInvalid("init: it comes once, first", hint="open another socket")


async def _first(socket: WebSocket) -> Init:
    try:
        async with asyncio.timeout(_INIT_S):
            sent = await read_frame(socket)
    except TimeoutError:
        raise RequestTooSlow(f"no init came for {_INIT_S:g} s", hint="send it first") from None
    if not isinstance(sent, Init):
        raise RequestInvalid("the first frame is no init", hint='send {"type": "init", "cmd": [...]}')
    return sent


async def _tell(socket: WebSocket, said: dict[str, Any]) -> None:
    await socket.send_text(orjson.dumps(said).decode())
