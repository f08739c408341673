"""One connection inside a tunnel, joined to the target on the driver's side."""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from collections.abc import Awaitable, Callable

from orchard_core.errors import SandboxConnectionLost
from orchard_core.sandbox.agent.address import AgentAddress

OPEN, DATA, END, RESET, WINDOW, PING, PONG = range(1, 8)
HEADER = struct.Struct(">BII")
_INITIAL_WINDOW = 256 * 1024
_PIECE = 32 * 1024
_DIAL_S = 10.0

Send = Callable[[int, int, bytes], Awaitable[None]]


class TunnelStream:
    """Each direction has a window, so a slow end stops its own stream and nothing else."""

    def __init__(self, number: int, target: AgentAddress, send: Send, ended: Callable[[], object]) -> None:
        self._number = number
        self._target = target
        self._send = send
        self._ended = ended
        self._window = _INITIAL_WINDOW
        self._queue: deque[bytes] = deque()
        self._queued = 0
        self._peer_done = False
        self._moved = asyncio.Event()
        self._credited = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Dial the target and begin to copy."""
        self._task = asyncio.create_task(self._run())

    def received(self, payload: bytes) -> None:
        """Data from inside; the peer keeps to the window, or loses the stream."""
        self._queued += len(payload)
        if self._queued > _INITIAL_WINDOW:
            self.abort()
            return
        self._queue.append(payload)
        self._moved.set()

    def received_end(self) -> None:
        """No more data from inside."""
        self._peer_done = True
        self._moved.set()

    def credit(self, size: int) -> None:
        """The inside has taken `size` bytes."""
        self._window += size
        self._credited.set()

    def abort(self) -> None:
        """Drop both directions now."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        writer: asyncio.StreamWriter | None = None
        try:
            async with asyncio.timeout(_DIAL_S):
                reader, writer = await self._target.connect()
            async with asyncio.TaskGroup() as both:
                both.create_task(self._inward(reader))
                both.create_task(self._outward(writer))
        except* (OSError, SandboxConnectionLost):
            await self._reset()
        finally:
            if writer is not None:
                writer.transport.abort() if self._broken else writer.close()
            self._ended()

    _broken = False

    async def _reset(self) -> None:
        self._broken = True
        try:
            await self._send(RESET, self._number, b"")
        except SandboxConnectionLost:
            return

    async def _inward(self, reader: asyncio.StreamReader) -> None:
        while True:
            while self._window <= 0:
                self._credited.clear()
                await self._credited.wait()
            piece = await reader.read(min(_PIECE, self._window))
            if not piece:
                await self._send(END, self._number, b"")
                return
            self._window -= len(piece)
            await self._send(DATA, self._number, piece)

    async def _outward(self, writer: asyncio.StreamWriter) -> None:
        while True:
            while self._queue:
                piece = self._queue.popleft()
                writer.write(piece)
                await writer.drain()
                self._queued -= len(piece)
                await self._send(WINDOW, self._number, struct.pack(">I", len(piece)))
            if self._peer_done:
                writer.write_eof()
                return
            self._moved.clear()
            await self._moved.wait()
