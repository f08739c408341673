"""A way between two programs that can be stopped at a message, cut and mended: a breakpoint for programs that
run as they are."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

_PIECE = 64 << 10
_TEXT_MAX = 256
"""Bytes of what came before that are kept: a network cuts a text wherever it likes."""

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Dial = Callable[[], Awaitable[Streams]]
"""Opens a connection to whoever is behind the gate."""


@dataclass(kw_only=True)
class Stop:
    """Where traffic stops once. `reached` is for the thread of a test, the rest for the gate's own."""

    text: bytes
    """What a request must contain; the first that does is stopped."""
    answer: bool = False
    """The request passes, and its answer is what stops."""
    reached: threading.Event = field(default_factory=threading.Event)
    """Set when it has."""
    released: asyncio.Event = field(default_factory=asyncio.Event)
    """Set to let go on what was stopped."""
    deliver: bool = True
    """Whether what was stopped arrives after all, its sender dead or not."""

    def within(self, before: bytes, piece: bytes) -> bool:
        """Whether the text ends in this piece, after what came before it."""
        assert len(self.text) <= _TEXT_MAX
        return self.text in before[max(0, len(before) - len(self.text) + 1) :] + piece


class Gate:
    """Passes connections on, piece by piece."""

    def __init__(self, dial: Dial) -> None:
        self._dial = dial
        self._stops: list[Stop] = []
        self._server: asyncio.Server | None = None
        self._at = ("127.0.0.1", 0)
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self, host: str = "127.0.0.1", port: int = 0) -> int:
        """Listen; the port."""
        self._at = (host, port)
        self._server = await asyncio.start_server(self._accept, host, port, limit=_PIECE)
        self._at = self._server.sockets[0].getsockname()[:2]
        return self._at[1]

    def stop_at(self, stop: Stop) -> None:
        """Stop the next request that fits."""
        self._stops.append(stop)

    def forget_stops(self) -> None:
        """Let whatever is stopped or would be go on."""
        for stop in self._stops:
            stop.released.set()
        self._stops.clear()

    async def cut(self) -> None:
        """Break every connection, and refuse new ones, until `mend`."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self.break_all()

    def break_all(self) -> None:
        """Break every connection in the middle; new ones are welcome."""
        for writer in list(self._writers):
            writer.transport.abort()

    async def mend(self) -> None:
        """Listen again where it did."""
        if self._server is None:
            await self.open(*self._at)

    async def close(self) -> None:
        """End it."""
        self.forget_stops()
        await self.cut()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        try:
            await self._pass(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()
            self._writers.discard(writer)
            self._tasks.discard(task)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind, beyond = await self._dial()
        self._writers.add(beyond)
        awaited: list[Stop] = []
        try:
            forth = asyncio.create_task(self._forth(reader, beyond, awaited))
            back = asyncio.create_task(self._back(behind, writer, awaited))
            try:
                await asyncio.gather(forth, back)
            finally:
                forth.cancel()
                back.cancel()
        finally:
            beyond.transport.abort()
            self._writers.discard(beyond)

    async def _forth(
        self, reader: asyncio.StreamReader, beyond: asyncio.StreamWriter, awaited: list[Stop]
    ) -> None:
        before = b""
        while piece := await reader.read(_PIECE):
            stop = next((one for one in self._stops if one.within(before, piece)), None)
            before = (before + piece)[-_TEXT_MAX:]
            if stop is not None:
                self._stops.remove(stop)
                if stop.answer:
                    awaited.append(stop)
                elif not await _held(stop):
                    beyond.transport.abort()
                    return
            beyond.write(piece)
            await beyond.drain()
        with contextlib.suppress(OSError):
            beyond.write_eof()

    async def _back(
        self, behind: asyncio.StreamReader, writer: asyncio.StreamWriter, awaited: list[Stop]
    ) -> None:
        while piece := await behind.read(_PIECE):
            if awaited and not await _held(awaited.pop()):
                writer.transport.abort()
                return
            writer.write(piece)
            await writer.drain()
        with contextlib.suppress(OSError):
            writer.write_eof()


async def _held(stop: Stop) -> bool:
    stop.reached.set()
    await stop.released.wait()
    return stop.deliver
