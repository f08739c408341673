"""uvicorn's HTTP protocol with bounds on what a hostile client may hold open, and a server that drains."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import socket
from collections.abc import Callable, Iterator
from functools import partial
from http import HTTPStatus
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from orchard_env.service.bounded_socket import BoundedSocket
from orchard_env.service.exchange import ExchangeProtocol
from orchard_env.service.held import HELD_MAX, Held
from orchard_env.service.problems import refused
from orchard_env.service.room import Room, connections_max

HEAD_S = 20.0
"""A request's line and headers must be whole so many seconds after their first byte, or the connection's."""
HEAD_MAX = 64 << 10
"""Bytes of them at most."""
IDLE_S = 75.0
"""A connection that carries nothing for so many seconds is closed."""
MESSAGE_MAX = 5 << 20
"""Bytes of a WebSocket's message; who takes JSON from them says so from 4 MiB on."""
STALL_S = 120.0
"""A client that takes nothing of its answer for so many seconds is cut off."""
LINGER_S = 2.0
"""How long what a client still sends is dropped, so that it hears why it was refused."""


class Connection(ExchangeProtocol):
    """One client."""

    head_s = HEAD_S
    stall_s = STALL_S
    _due: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None
    _head = 0
    _in_head = True
    _over = False

    def __init__(self, *args: Any, room: Room, **more: Any) -> None:
        super().__init__(*args, **more)
        self._room = room

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client connects: its first head is due."""
        super().connection_made(transport)
        self._arm()
        self._room.came(transport)

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        if self._over:
            return
        if self._in_head:
            self._head += len(data)
            self._arm()
        super().data_received(data)
        if self._in_head and self._head > HEAD_MAX and not self._over:
            self._refuse()

    def on_message_begin(self) -> None:
        """A head begins."""
        self._in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The head is whole."""
        self._in_head, self._head = False, 0
        self._disarm()
        self._room.asked(self.transport)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The body is whole: what comes next is a head."""
        super().on_message_complete()
        self._in_head = True

    def on_response_complete(self) -> None:
        """The answer is whole; a request that came behind is next."""
        if not self.pipeline:
            self._room.answered(self.transport)
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client left."""
        self._disarm()
        self._room.left(self.transport)
        self.resume_writing()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The client does not take what is sent."""
        super().pause_writing()
        if self._stalled is None:
            self._stalled = self.loop.call_later(self.stall_s, self.transport.abort)

    def resume_writing(self) -> None:
        """It does again."""
        super().resume_writing()
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def _arm(self) -> None:
        if self._due is None:
            self._due = self.loop.call_later(self.head_s, self._late)

    def _disarm(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None

    def _late(self) -> None:
        self._due = None
        if not self.transport.is_closing():
            self.transport.close()

    def _refuse(self) -> None:
        if not self.transport.is_closing():
            self._say(431, f"the line and the headers of a request have at most {HEAD_MAX} bytes")

    def send_400_response(self, msg: str) -> None:
        """What came is no request, as far as it can be read: too long an address is none either."""
        self._say(400, "what was sent is no HTTP request, or one whose address is too long")

    def _say(self, status: int, message: str) -> None:
        """The last answer on this connection."""
        answer = refused(status, message, secrets.token_hex(8))
        head = b"".join(b"%s: %s\r\n" % pair for pair in answer.raw_headers)
        line = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n".encode()
        self.transport.write(b"%s%sconnection: close\r\n\r\n%s" % (line, head, answer.body))
        if not self.transport.can_write_eof():  # TLS
            self.transport.close()
            return
        # To close with something unread resets the connection, and the client never sees the answer.
        self.transport.write_eof()
        self._over = True
        self.loop.call_later(LINGER_S, self.transport.close)


class Server(uvicorn.Server):
    """uvicorn's own kills its process once more when all is done, by the signal that it was sent; then
    nothing that comes after it is ever reached."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """The first SIGTERM or SIGINT begins the end, the second waits for nothing more."""
        loop = asyncio.get_running_loop()
        caught = []
        for number in (signal.SIGTERM, signal.SIGINT):
            try:
                loop.add_signal_handler(number, self._told)
                caught.append(number)
            except (RuntimeError, ValueError):
                break  # not the main thread: whoever runs it ends it
        try:
            yield
        finally:
            for number in caught:
                loop.remove_signal_handler(number)

    on_end: Callable[[], None] | None = None
    """Called when it is told to end, before it waits for the requests that it has."""

    def _told(self) -> None:
        self.force_exit = self.should_exit
        if self.on_end is not None:
            self.on_end()
        self.should_exit = True


def server(
    app: ASGIApp,
    *,
    drain_s: float,
    connection: type[Connection] = Connection,
    websocket: type[BoundedSocket] = BoundedSocket,
    connections: int = 0,
    held: int = HELD_MAX,
    **more: Any,
) -> Server:
    """A server that, told to end, takes no more connections, waits `drain_s` for the requests it has, and
    then ends the application's life span. `connections` bounds how many it holds; see `connections_max`,
    `held` what those of WebSockets have it hold. `more` goes to uvicorn: certificates."""
    room = Room(connections_max(connections))
    return Server(
        uvicorn.Config(
            app,
            http=partial(connection, room=room),  # type: ignore[arg-type]
            ws=partial(websocket, room=room, held=Held(held)),  # type: ignore[arg-type]
            ws_max_size=MESSAGE_MAX,
            # Its memory and time would be the client's to spend.
            ws_per_message_deflate=False,
            loop="asyncio",
            lifespan="on",
            log_config=None,
            log_level="warning",  # below it the web socket library writes addresses, which may hold a key
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            timeout_keep_alive=int(IDLE_S),
            timeout_graceful_shutdown=max(1, int(drain_s)),
            backlog=4096,
            **more,
        )
    )


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens already, so that a busy port is told before anything starts. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.create_server((host, port), family=family, backlog=4096, reuse_port=False)
    # Connections inherit it; without it an answer of two writes waits 40 ms for an acknowledgement.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    os.set_inheritable(sock.fileno(), False)
    return sock
