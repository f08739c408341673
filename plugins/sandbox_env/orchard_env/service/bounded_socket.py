"""uvicorn's WebSocket protocol, whose client cannot make the service hold what it does not take, and is
neither cut off nor waited for while the service does not take what it sends."""

from __future__ import annotations

import asyncio
import select
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame
from websockets.http11 import Request

from orchard_env.service.leaving import LEFT
from orchard_env.service.room import Room

FRAGMENTS_MAX = 4096
"""Frames of one message: empty ones have no size by which they could be counted."""
GLANCE_S = 1.0
"""So often it is looked whether a client is there of which nothing is read."""
_TOO_BIG = 1009


class BoundedSocket(WebSocketsSansIOProtocol):
    """One client."""

    def __init__(self, *args: Any, room: Room, **more: Any) -> None:
        super().__init__(*args, **more)
        self._room = room
        self._left = asyncio.Event()
        self._taken = 0
        self._glancing: asyncio.TimerHandle | None = None

    def connection_lost(self, exc: Exception | None) -> None:
        """The client left."""
        self._room.left(self.transport)
        self._left.set()
        super().connection_lost(exc)

    def handle_connect(self, event: Request) -> None:
        """The handshake."""
        super().handle_connect(event)
        if self.response.status_code == 101:
            self.scope[LEFT] = self._left  # type: ignore[literal-required]

    async def receive(self) -> Any:
        """The application takes a message."""
        self._taken += 1
        return await super().receive()

    def send_receive_event_to_app(self) -> None:
        """A message is whole; nothing more is read until it is taken, not even the end of the connection."""
        super().send_receive_event_to_app()
        if self.read_paused and self._glancing is None:
            self._glancing = self.loop.call_later(GLANCE_S, self._glance, self._taken)

    def _glance(self, taken: int) -> None:
        self._glancing = None
        if not self.read_paused or self.transport.is_closing():
            return
        if taken == self._taken:
            if _hung_up(self.transport):
                self._left.set()
                return
            self._speak()
        self._glancing = self.loop.call_later(GLANCE_S, self._glance, self._taken)

    def _speak(self) -> None:
        """The end of a connection may be behind what we have not read; but who has gone refuses our words."""
        if self.writable.is_set() and not self.close_sent:
            self.conn.send_ping(b"")
            self.transport.write(b"".join(self.conn.data_to_send()))

    def keepalive_timeout(self) -> None:
        """No answer to a ping came, unless it lies behind what we have not read."""
        if not self.read_paused:
            super().keepalive_timeout()
            return
        self.pong_timer = None
        self.pending_ping_payload = None
        self.schedule_ping()

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


def _hung_up(transport: asyncio.Transport) -> bool:
    """Whether the other side has closed, although bytes of it may still be unread."""
    sock = transport.get_extra_info("socket")
    if sock is None or sock.fileno() < 0:
        return True
    poll = select.poll()
    poll.register(sock.fileno(), select.POLLRDHUP)
    return bool(poll.poll(0))
