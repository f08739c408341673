"""Bytes both ways between a WebSocket and a raw connection."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress

from starlette.websockets import WebSocket, WebSocketDisconnect

from orchard_env.service.leaving import client_left

PIECE = 64 * 1024
"""Bytes of one frame."""
EOF = '{"eof": true}'
"""The frame that ends one direction."""
_LINGER_S = 60.0
_TAKE_S = 75.0


class Pump:
    """One connection. The slower side sets the pace: nothing is read that could not be handed on."""

    def __init__(self, socket: WebSocket, streams: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
        self._socket = socket
        self._reader, self._writer = streams
        self._moved = 0

    async def run(self) -> None:
        """Until both directions have ended, the client has left, or one direction has ended and the other
        has stood still for a minute."""
        down = asyncio.create_task(self._down())
        up = asyncio.create_task(self._up())
        leaves = asyncio.create_task(client_left(self._socket.scope))
        try:
            await asyncio.wait((down, up, leaves), return_when=asyncio.FIRST_COMPLETED)
            if leaves.done() or (up.done() and up.result() is False):
                return
            await self._linger(down if up.done() else up)
            if not up.done() or up.result():
                await self._closed()
        finally:
            for task in (down, up, leaves):
                task.cancel()
            await asyncio.gather(down, up, leaves, return_exceptions=True)

    async def _linger(self, late: asyncio.Task[bool]) -> None:
        moved = -1
        while not late.done() and moved != self._moved:
            moved = self._moved
            await asyncio.wait((late,), timeout=_LINGER_S)

    async def _closed(self) -> None:
        with suppress(OSError, RuntimeError, WebSocketDisconnect):
            await self._socket.close()

    async def _down(self) -> bool:
        """Whether the agent's direction was handed on to its end."""
        with suppress(OSError, RuntimeError, WebSocketDisconnect):
            while piece := await self._reader.read(PIECE):
                async with asyncio.timeout(_TAKE_S):
                    await self._socket.send_bytes(piece)
                self._moved += len(piece)
            await self._socket.send_text(EOF)
            return True
        return False

    async def _up(self) -> bool:
        """Whether the client ended its direction, or the agent reads no more; False when the client left."""
        while True:
            message = await self._socket.receive()
            if message["type"] == "websocket.disconnect":
                return False
            piece = message.get("bytes")
            try:
                if piece:
                    self._writer.write(piece)
                    await self._writer.drain()
                    self._moved += len(piece)
                elif piece is None:
                    if not _is_eof(message.get("text") or ""):
                        return False
                    self._writer.write_eof()
                    return True
            except OSError:
                return True


def _is_eof(text: str) -> bool:
    try:
        return bool(json.loads(text) == {"eof": True})
    except (ValueError, RecursionError):
        return False
