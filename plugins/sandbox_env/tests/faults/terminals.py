"""A terminal of either contract, for cases about both."""

from __future__ import annotations

import asyncio
import base64
import json
import signal
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import aiohttp

from orchard_core import AgentClient, AgentEndpoint, AgentTerminal, Process, PtySize

from .orchestrators import GENEROUS_S


class Terminal:
    """A program on a terminal, and one who sits before it."""

    async def type(self, keys: bytes) -> None:
        """Press them."""
        raise NotImplementedError

    async def read(self) -> bytes:
        """What is shown next; empty when the program has ended."""
        raise NotImplementedError

    async def signal(self, number: signal.Signals) -> None:
        """Send one to the program."""
        raise NotImplementedError

    async def code(self) -> int:
        """The program's exit code; all was read before."""
        raise NotImplementedError

    def leave(self) -> None:
        """Go without a word."""
        raise NotImplementedError

    async def shown(self, until: bytes = b"") -> bytes:
        """Everything until that, or to the end."""
        seen = b""
        while (piece := await self.read()) and (not until or until not in seen + piece):
            seen += piece
        return seen + piece


class _V1(Terminal):
    def __init__(self, connection: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = connection
        self._code: int | None = None

    async def type(self, keys: bytes) -> None:
        await self._socket.send_json({"type": "stdin", "data": base64.b64encode(keys).decode()})

    async def read(self) -> bytes:
        while True:
            told = json.loads((await self._socket.receive()).data)
            if told["type"] == "exit":
                self._code = told["code"]
                return b""
            assert told["type"] in ("ready", "stdout"), told
            if told.get("data"):
                return base64.b64decode(told["data"])

    async def signal(self, number: signal.Signals) -> None:
        await self._socket.send_json({"type": "signal", "sig": number.name.removeprefix("SIG")})

    async def code(self) -> int:
        assert self._code is not None
        return self._code

    def leave(self) -> None:
        self._socket.get_extra_info("socket").shutdown(socket.SHUT_RDWR)


class _V2(Terminal):
    def __init__(self, process: Process, terminal: AgentTerminal) -> None:
        self._process, self._terminal = process, terminal

    async def type(self, keys: bytes) -> None:
        await self._terminal.write(keys)

    async def read(self) -> bytes:
        return await self._terminal.read()

    async def signal(self, number: signal.Signals) -> None:
        await self._process.signal(number)

    async def code(self) -> int:
        return (await self._process.wait(GENEROUS_S)).exit_code

    def leave(self) -> None:
        self._terminal.abort()


@asynccontextmanager
async def _published(url: str, box: str, command: Sequence[str]) -> AsyncIterator[Terminal]:
    async with (
        aiohttp.ClientSession(url) as session,
        session.ws_connect(f"/sandboxes/{box}/exec/pty") as opened,
        asyncio.timeout(GENEROUS_S),
    ):
        await opened.send_json({"type": "init", "cmd": list(command)})
        yield _V1(opened)


@asynccontextmanager
async def _wider(url: str, box: str, command: Sequence[str]) -> AsyncIterator[Terminal]:
    at = AgentEndpoint(url=f"{url}/v2/sandboxes/{box}/agent", token="", sandbox_id=box)
    async with AgentClient(at) as agent, asyncio.timeout(GENEROUS_S):
        process = await agent.start(command, pty=PtySize())
        async with await agent.terminal(process.id, hang_up=True) as terminal:
            yield _V2(process, terminal)


TERMINALS: Mapping[str, Callable[[str, str, Sequence[str]], AbstractAsyncContextManager[Terminal]]] = {
    "v1": _published,
    "v2": _wider,
}
