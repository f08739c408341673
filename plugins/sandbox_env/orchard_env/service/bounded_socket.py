"""uvicorn's WebSocket protocol, whose client cannot make the service hold what it does not take."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame

from orchard_env.service.room import Room

FRAGMENTS_MAX = 4096
"""Frames of one message: empty ones have no size by which they could be counted."""
_TOO_BIG = 1009


class BoundedSocket(WebSocketsSansIOProtocol):
    """One client."""

    def __init__(self, *args: Any, room: Room, **more: Any) -> None:
        super().__init__(*args, **more)
        self._room = room

    def connection_lost(self, exc: Exception | None) -> None:
        """The client left."""
        self._room.left(self.transport)
        super().connection_lost(exc)

    def handle_ping(self) -> None:
        """Answered, unless the client takes no answers: those would pile up for as long as it pings."""
        if self.writable.is_set():
            super().handle_ping()
        else:
            self.conn.data_to_send()

    def handle_cont(self, event: Frame) -> None:
        """One more piece of a message."""
        if len(self.frames) < FRAGMENTS_MAX:
            super().handle_cont(event)
        elif not self.transport.is_closing():
            self.conn.fail(_TOO_BIG, "a message in too many frames")
            self.transport.write(b"".join(self.conn.data_to_send()))
            self.close_sent = True
            self.transport.close()

    transport: asyncio.Transport
