"""uvicorn's WebSocket protocol, whose client cannot make the service hold what it does not take, and is
neither cut off nor waited for while the service does not take what it sends."""

from __future__ import annotations

import asyncio
import select
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame
from websockets.http11 import Request

from orchard_env.service.held import Held
from orchard_env.service.leaving import LEFT
from orchard_env.service.room import Room

FRAGMENTS_MAX = 4096
"""Frames of one message: empty ones have no size by which they could be counted."""
GLANCE_S = 1.0
"""So often it is looked whether a client is there of which nothing is read."""
STALL_S = 120.0
"""A client that takes nothing for so many seconds is cut off."""
LINGER_S = 10.0
"""How long what was said last may take to arrive."""
_TOO_BIG, _LATER = 1009, 1013


class BoundedSocket(WebSocketsSansIOProtocol):
    """One client."""

    stall_s = STALL_S
    linger_s = LINGER_S

    def __init__(self, *args: Any, room: Room, held: Held, **more: Any) -> None:
        super().__init__(*args, **more)
        self._room = room
        self._held = held
        self._left = asyncio.Event()
        self._taken = 0
        self._pieces = self._waiting = 0
        self._glancing: asyncio.TimerHandle | None = None
        self._cutting: asyncio.TimerHandle | None = None

    def connection_lost(self, exc: Exception | None) -> None:
        """The client left."""
        self._room.left(self.transport)
        self._held.now(self._too_much, 0)
        self._cut_in(None)
        self._left.set()
        super().connection_lost(exc)

    def handle_connect(self, event: Request) -> None:
        """The handshake."""
        super().handle_connect(event)
        if self.response.status_code == 101:
            self.scope[LEFT] = self._left  # type: ignore[literal-required]

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        super().data_received(data)
        self._count()

    def _count(self) -> None:
        """Of a frame that is not whole, a message that is not whole, and one that is not taken."""
        size = len(self.conn.reader.buffer) + self._pieces + self._waiting
        self._held.now(self._too_much, 0 if self.disconnected else size)

    def _too_much(self) -> None:
        self._fail(_LATER, "the service holds too much that is not whole; come again")

    def _fail(self, code: int, reason: str) -> None:
        """The last word on this connection."""
        if not self.transport.is_closing():
            self.conn.fail(code, reason)
            self.transport.write(b"".join(self.conn.data_to_send()))
            self.close_sent = True
            self.transport.close()
            self._cut_in(self.linger_s)

    def _cut_in(self, seconds: float | None) -> None:
        """However much is still unsent, nothing is left of the connection in so many seconds; None: it may
        stay. Closing it in order waits for as long as the client takes nothing."""
        if self._cutting is not None:
            self._cutting.cancel()
        self._cutting = None if seconds is None else self.loop.call_later(seconds, self.transport.abort)

    def pause_writing(self) -> None:
        """The client does not take what is sent."""
        super().pause_writing()
        if self._cutting is None:
            self._cut_in(self.stall_s)

    def resume_writing(self) -> None:
        """It does again."""
        super().resume_writing()
        if not self.transport.is_closing():
            self._cut_in(None)

    def on_task_complete(self, task: asyncio.Task[None]) -> None:
        """The application has done with it."""
        super().on_task_complete(task)
        if not self.disconnected:
            self._cut_in(self.linger_s)

    async def receive(self) -> Any:
        """The application takes a message."""
        self._taken += 1
        message = await super().receive()
        self._waiting = 0
        self._count()
        return message

    def handle_text(self, event: Frame) -> None:
        """A message begins."""
        self._pieces = len(event.data)
        super().handle_text(event)

    def handle_bytes(self, event: Frame) -> None:
        """A message begins."""
        self._pieces = len(event.data)
        super().handle_bytes(event)

    def send_receive_event_to_app(self) -> None:
        """A message is whole; nothing more is read until it is taken, not even the end of the connection."""
        self._waiting += self._pieces
        self._pieces = 0
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
            self._cut_in(self.linger_s)
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
            self._pieces += len(event.data)
            super().handle_cont(event)
        else:
            self._fail(_TOO_BIG, "a message in too many frames")

    transport: asyncio.Transport


def _hung_up(transport: asyncio.Transport) -> bool:
    """Whether the other side has closed, although bytes of it may still be unread."""
    sock = transport.get_extra_info("socket")
    if sock is None or sock.fileno() < 0:
        return True
    poll = select.poll()
    poll.register(sock.fileno(), select.POLLRDHUP)
    return bool(poll.poll(0))
