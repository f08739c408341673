"""A WebSocket that asyncio's streams take for a connection."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket as sockets
from collections import deque

import aiohttp

from orchard_core.sandbox.agent.wire import PIECE

EOF = json.dumps({"eof": True})
"""The text frame that ends one direction."""
_HIGH = 1 << 20
"""Bytes waiting to be sent above which the writer is paused."""


class WebSocketTransport(asyncio.Transport):
    """Binary frames are bytes of either direction; each direction ends on its own, as with TCP."""

    def __init__(
        self, socket: aiohttp.ClientWebSocketResponse, protocol: asyncio.StreamReaderProtocol
    ) -> None:
        super().__init__()
        self._socket = socket
        self._protocol = protocol
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._ending = False
        self._closing = False
        self._paused = False
        self._filled = asyncio.Event()
        self._reading = asyncio.Event()
        self._reading.set()
        self._tasks: list[asyncio.Task[None]] = []
        self._ended: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to send and receive."""
        self._protocol.connection_made(self)
        self._tasks = [asyncio.create_task(self._send()), asyncio.create_task(self._receive())]
        self._ended = asyncio.create_task(self._end())

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """See asyncio.WriteTransport."""
        if self._closing or self._ending or not data:
            return
        self._waiting.append(bytes(data))
        self._size += len(data)
        self._filled.set()
        if self._size > _HIGH and not self._paused:
            self._paused = True
            self._protocol.pause_writing()

    def can_write_eof(self) -> bool:
        """See asyncio.WriteTransport."""
        return True

    def write_eof(self) -> None:
        """See asyncio.WriteTransport."""
        self._ending = True
        self._filled.set()

    def is_closing(self) -> bool:
        """See asyncio.BaseTransport."""
        return self._closing

    def close(self) -> None:
        """Send what waits, then close."""
        self._ending = self._closing = True
        self._filled.set()

    def abort(self) -> None:
        """Drop both directions now. The peer sees the connection end: a word of farewell would have to wait
        behind what it does not take."""
        self._closing = True
        connection = self._socket.get_extra_info("socket")
        if connection is not None:
            with contextlib.suppress(OSError):
                connection.shutdown(sockets.SHUT_RDWR)
        for task in self._tasks:
            task.cancel()

    def pause_reading(self) -> None:
        """See asyncio.ReadTransport."""
        self._reading.clear()

    def resume_reading(self) -> None:
        """See asyncio.ReadTransport."""
        self._reading.set()

    def is_reading(self) -> bool:
        """See asyncio.ReadTransport."""
        return self._reading.is_set()

    async def _send(self) -> None:
        while True:
            while self._waiting:
                await self._socket.send_bytes(self._take())
                self._sent()
            if self._ending:
                await self._socket.send_str(EOF)
                return
            self._filled.clear()
            await self._filled.wait()

    def _take(self) -> bytes:
        """Small pieces go together: a frame each would cost more than they weigh."""
        pieces = [self._waiting.popleft()]
        size = len(pieces[0])
        while self._waiting and size + len(self._waiting[0]) <= PIECE:
            pieces.append(self._waiting.popleft())
            size += len(pieces[-1])
        self._size -= size
        return b"".join(pieces)

    def _sent(self) -> None:
        if self._paused and self._size <= _HIGH // 4:
            self._paused = False
            self._protocol.resume_writing()

    async def _receive(self) -> None:
        async for message in self._socket:
            if message.type is aiohttp.WSMsgType.BINARY:
                self._protocol.data_received(message.data)
            elif message.type is aiohttp.WSMsgType.TEXT and json.loads(message.data).get("eof"):
                self._protocol.eof_received()
            await self._reading.wait()

    async def _end(self) -> None:
        """When both directions have ended, or one has failed, so has the connection."""
        sending, receiving = self._tasks
        await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        if receiving.done() or sending.cancelled() or sending.exception() or self._closing:
            sending.cancel()
            receiving.cancel()
        ended = await asyncio.gather(*self._tasks, return_exceptions=True)
        self._closing = True
        failed = next((error for error in ended if isinstance(error, Exception)), None)
        self._protocol.connection_lost(None if failed is None else ConnectionResetError(str(failed)))
        await self._socket.close()
