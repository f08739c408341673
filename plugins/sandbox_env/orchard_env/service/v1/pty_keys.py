"""What a terminal's client typed and its program has not read yet."""

from __future__ import annotations

import asyncio

KEYS_MAX = 4 << 20
"""Bytes that wait; so much of a paste never keeps the client's other words from being heard."""
_PIECE = 64 << 10


class Keys:
    """Bytes in order, in by one and out by another."""

    def __init__(self, most: int = KEYS_MAX) -> None:
        self._most = most
        self._waiting = bytearray()
        self._some = asyncio.Event()
        self._room = asyncio.Event()

    async def put(self, typed: bytes) -> None:
        """Add what was typed. Returns when there is room for more."""
        self._waiting += typed
        self._some.set()
        while len(self._waiting) > self._most:
            self._room.clear()
            await self._room.wait()

    async def take(self) -> bytes:
        """The next piece, when there is one."""
        while not self._waiting:
            self._some.clear()
            await self._some.wait()
        piece = bytes(self._waiting[:_PIECE])
        del self._waiting[:_PIECE]
        self._room.set()
        return piece
