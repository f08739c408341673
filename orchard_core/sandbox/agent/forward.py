"""Ports inside, reached from the driver."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from orchard_core.errors import SandboxError
from orchard_core.sandbox.agent.address import Streams
from orchard_core.sandbox.agent.link import AgentLink
from orchard_core.types.sandbox import LocalAddress

_PIECE = 64 * 1024


class Forward:
    """A local listener; each of its connections becomes one to `port` on the sandbox's loopback, or to the
    agent itself when that is None and a service leads to it."""

    def __init__(self, link: AgentLink, port: int | None) -> None:
        self._link = link
        self._path = "/v1/raw" if port is None else f"/v1/forward/{port}"
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self) -> LocalAddress:
        """Begin to listen on a free port of 127.0.0.1."""
        self._server = await asyncio.start_server(self._accepted, "127.0.0.1", 0)
        return self.address

    @property
    def address(self) -> LocalAddress:
        """Where it listens. Only after `open`."""
        assert self._server is not None
        host, port = self._server.sockets[0].getsockname()[:2]
        return LocalAddress(host=host, port=port)

    async def connect(self) -> Streams:
        """One raw connection to the port, without the listener. Raises PortRefused. The caller closes it."""
        _, streams = await self._link.upgrade("GET", self._path, None, "orchard-stream")
        return streams

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            inner_reader, inner_writer = await self.connect()
        except BaseException as error:
            writer.transport.abort()  # what a refused connection looks like to its program
            if isinstance(error, SandboxError):
                return
            raise
        await join((reader, writer), (inner_reader, inner_writer))

    async def close(self) -> None:
        """Stop listening and drop the connections."""
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def join(left: Streams, right: Streams) -> None:
    """Copy both ways until both have ended; the end of one direction is passed on alone."""
    try:
        await asyncio.gather(
            _copy(left[0], right[1], abort_all(left, right)), _copy(right[0], left[1], abort_all(left, right))
        )
    finally:
        abort_all(left, right)()


def abort_all(*streams: Streams) -> Callable[[], None]:
    """A function that drops the connections at once."""

    def abort() -> None:
        for _, writer in streams:
            writer.transport.abort()

    return abort


async def _copy(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, abort: Callable[[], None]
) -> None:
    try:
        while piece := await reader.read(_PIECE):
            writer.write(piece)
            await writer.drain()
        writer.write_eof()
        await writer.drain()
    except OSError:
        abort()
