"""What clients of WebSockets have the service hold: messages that are not whole, or not taken yet."""

from __future__ import annotations

from collections.abc import Callable

HELD_MAX = 256 << 20
"""Bytes, of all sockets of a service together."""


class Held:
    """Bytes by socket. Where all hold too much, the one that holds most is ended."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._sizes: dict[Callable[[], None], int] = {}
        self._sum = 0

    def now(self, end: Callable[[], None], size: int) -> None:
        """A socket, which is ended by this, holds so much from now on."""
        before = self._sizes.pop(end, 0)
        self._sum += size - before
        if size:
            self._sizes[end] = size
        while self._sum > self._most:
            largest = max(self._sizes, key=self._sizes.__getitem__)
            self.now(largest, 0)
            largest()
