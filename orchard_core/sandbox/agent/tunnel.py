"""The driver's end of a tunnel: programs inside reach one fixed target, and nothing else."""

from __future__ import annotations

import asyncio
import struct

from orchard_core.errors import SandboxConnectionLost
from orchard_core.sandbox.agent.address import AgentAddress, Streams
from orchard_core.sandbox.agent.link import AgentLink
from orchard_core.sandbox.agent.tunnel_stream import (
    DATA,
    END,
    HEADER,
    OPEN,
    PING,
    PONG,
    RESET,
    WINDOW,
    TunnelStream,
)
from orchard_core.types.sandbox import LocalAddress

_PEER_S = 60.0
_PING_S = 15.0
_FRAME_MAX = 64 * 1024


class Tunnel:
    """One connection to the agent that carries every connection made to `address` inside.

    The driver alone chooses the target, when it makes the tunnel; the inside cannot name another.
    """

    def __init__(self, link: AgentLink, target: LocalAddress | str) -> None:
        """`target` is a TCP address or the absolute path of a Unix socket, on the driver's side."""
        self._link = link
        if isinstance(target, str):
            self._target = AgentAddress(path=target)
        else:
            self._target = AgentAddress(host=target.host, port=target.port)
        self._streams: dict[int, TunnelStream] = {}
        self._outer: Streams | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self.address = LocalAddress(host="", port=0)
        """Where programs inside connect to. Only after `open`."""

    async def open(self, listen: str = "127.0.0.1:0") -> LocalAddress:
        """Have the agent listen on a loopback address inside. Raises SandboxError when the port is taken."""
        headers, self._outer = await self._link.upgrade(
            "POST", "/v1/tunnel", {"listen": listen}, "orchard-tunnel"
        )
        host, _, port = headers["x-orchard-listen"].rpartition(":")
        self.address = LocalAddress(host=host.strip("[]"), port=int(port))
        self._tasks = [asyncio.create_task(self._serve()), asyncio.create_task(self._keep_alive())]
        return self.address

    @property
    def alive(self) -> bool:
        """The connection to the agent still stands."""
        return bool(self._tasks) and not self._tasks[0].done()

    async def wait_closed(self) -> None:
        """Until the connection has ended, from whichever side."""
        await asyncio.wait(self._tasks[:1])

    async def close(self) -> None:
        """End the tunnel, its listener inside and all its streams."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._outer is not None:
            self._outer[1].transport.abort()  # a task that is ended before its first step aborts nothing

    async def _serve(self) -> None:
        assert self._outer is not None
        reader, writer = self._outer
        try:
            while True:
                async with asyncio.timeout(_PEER_S):
                    kind, stream, length = HEADER.unpack(await reader.readexactly(HEADER.size))
                    if length > _FRAME_MAX:
                        return
                    payload = await reader.readexactly(length) if length else b""
                await self._dispatch(kind, stream, payload)
        except (OSError, EOFError, SandboxConnectionLost):
            return
        finally:
            writer.transport.abort()
            for open_stream in list(self._streams.values()):
                open_stream.abort()

    async def _dispatch(self, kind: int, number: int, payload: bytes) -> None:
        if kind == OPEN:
            stream = TunnelStream(number, self._target, self._send, lambda: self._streams.pop(number, None))
            self._streams[number] = stream
            stream.start()
        elif kind == PING:
            await self._send(PONG, 0, b"")
        elif number in self._streams:
            stream = self._streams[number]
            if kind == DATA:
                stream.received(payload)
            elif kind == END:
                stream.received_end()
            elif kind == RESET:
                stream.abort()
            elif kind == WINDOW:
                stream.credit(struct.unpack(">I", payload)[0])

    async def _send(self, kind: int, stream: int, payload: bytes) -> None:
        assert self._outer is not None
        writer = self._outer[1]
        try:
            writer.write(HEADER.pack(kind, stream, len(payload)) + payload)
            async with asyncio.timeout(_PEER_S):
                await writer.drain()
        except OSError as error:
            raise SandboxConnectionLost(f"the tunnel to the agent broke: {error!r}") from error

    async def _keep_alive(self) -> None:
        while True:
            await asyncio.sleep(_PING_S)
            try:
                await self._send(PING, 0, b"")
            except SandboxConnectionLost:
                return
