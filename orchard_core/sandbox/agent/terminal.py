"""A connection to the terminal of a command."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from orchard_core.errors import SandboxConnectionLost
from orchard_core.sandbox.agent.address import Streams
from orchard_core.sandbox.agent.link import AgentLink
from orchard_core.sandbox.agent.wire import PIECE

_BROKEN = "the connection to the terminal broke; the command's output is still to be had by its id"


class AgentTerminal:
    """What is typed goes in, what the terminal shows comes out. Made by `AgentClient.terminal`.

    Keys that are on their way when the connection breaks may be lost: feed a program that must get every byte
    by `AgentProcess.write`.
    """

    def __init__(self, streams: Streams) -> None:
        self._reader, self._writer = streams

    async def read(self) -> bytes:
        """What came next; empty when the command has ended and all of it was read. Raises
        SandboxConnectionLost."""
        try:
            return await self._reader.read(PIECE)
        except OSError as error:
            raise SandboxConnectionLost(_BROKEN) from error

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while piece := await self.read():
            yield piece

    async def write(self, keys: bytes) -> None:
        """Type. It waits as long as the program does not read. Raises SandboxConnectionLost."""
        try:
            for start in range(0, len(keys), PIECE):
                self._writer.write(keys[start : start + PIECE])
                await self._writer.drain()
        except OSError as error:
            raise SandboxConnectionLost(_BROKEN) from error

    async def close(self) -> None:
        """Leave. Whether the command ends now was said at the beginning."""
        with contextlib.suppress(OSError):
            self._writer.close()
            await self._writer.wait_closed()

    def abort(self) -> None:
        """Leave at once, whatever is still on its way."""
        self._writer.transport.abort()

    async def __aenter__(self) -> AgentTerminal:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()


async def open_terminal(
    link: AgentLink, run_id: str, *, cursor: int, hang_up: bool, grace_s: int
) -> AgentTerminal:
    """Join the terminal of a run. Raises ExecError when it has none."""
    query = {"cursor": cursor, "hangup": 1 if hang_up else None, "grace": grace_s}
    _, streams = await link.upgrade("GET", f"/v1/exec/{run_id}/pty", query, "orchard-pty")
    return AgentTerminal(streams)
