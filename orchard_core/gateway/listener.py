"""The HTTP listener: uvicorn's httptools protocol with bounds on what a hostile client may hold open.

uvicorn's own `Server` is not used: it installs signal handlers and wakes ten times a second. The protocol
alone needs neither.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any
from urllib.parse import unquote

import httptools
import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from orchard_core.gateway import faults
from orchard_core.gateway.app import GatewayApp
from orchard_core.gateway.http import CLIENT, CLOSE
from orchard_core.types.sandbox import LocalAddress

MAX_HEAD = 512 << 10
"""Bytes of a request's line and headers at most (a piece that also ends a former body counts whole)."""

REQUEST_S = 120.0
"""A request that is not whole so many seconds after its connection or its first byte is answered no more."""


IDLE_S = 120.0
"""A connection that carries nothing for so many seconds is closed."""

_SILENT = logging.Logger("orchard.gateway.http", logging.CRITICAL)
"""What a hostile client sends is answered, not written to the operator's terminal; no handler hangs on it."""


class Exchange(RequestResponseCycle):
    """A request and its answer. An answer that is whole goes out in one write, head and body together: a
    write is a system call that costs more than all the rest of sending."""

    _start: Any = None

    async def send(self, message: Any) -> None:
        """The head of a whole answer, which tells its length, is held until its body: ASGI allows it."""
        start = self._start
        if start is None:
            if message["type"] == "http.response.start" and _tells_length(message["headers"]):
                self._start = message
            else:
                await super().send(message)
            return
        self._start = None
        if message.get("more_body") or self.flow.write_paused:
            await super().send(start)
            await super().send(message)
        elif not self.disconnected:
            self._send_whole(start, message["body"] if self.scope["method"] != "HEAD" else b"")

    def _send_whole(self, start: Any, body: bytes) -> None:
        """What uvicorn does for the two messages one after the other."""
        parts = [STATUS_LINE[start["status"]]]
        for header in start["headers"]:
            parts.append(b"%b: %b\r\n" % header)
            if header == CLOSE:
                self.keep_alive = False
        if not self.keep_alive and CLOSE not in start["headers"]:
            parts.append(b"connection: close\r\n")
        parts += (b"\r\n", body)
        self.response_started = self.response_complete = True
        self.transport.write(b"".join(parts))
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()


def _tells_length(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    return any(name == b"content-length" for name, _ in headers)


class Connection(HttpToolsProtocol):
    """One client connection."""

    left: Callable[[], None] | None = None
    """Called when the client leaves."""
    _idle_since = 0.0
    _idle_timer: asyncio.TimerHandle | None = None
    _in_head = True
    _in_request = True
    _head_bytes = 0
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client connects: its first head is due."""
        super().connection_made(transport)
        self.logger = _SILENT
        self._timer = self.loop.call_later(REQUEST_S, transport.close)

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        super().data_received(data)
        if not self._in_request:
            return
        if self._in_head:
            self._head_bytes += len(data)
        if self._head_bytes > MAX_HEAD:
            self._refuse(431, "the request's headers are too large")
        elif self._timer is None:
            self._timer = self.loop.call_later(REQUEST_S, self.transport.close)

    def on_message_begin(self) -> None:
        """A head begins."""
        self._in_head = self._in_request = True
        super().on_message_begin()
        self.scope[CLIENT] = self  # type: ignore[literal-required]

    def on_headers_complete(self) -> None:
        """The head is whole."""
        self._in_head = False
        self._head_bytes = 0
        self._begin()

    def _begin(self) -> None:
        """As uvicorn does it, but for its web sockets, and with our Exchange."""
        version, url, scope = self.parser.get_http_version(), httptools.parse_url(self.url), self.scope
        path = url.path.decode("ascii")
        scope["method"] = self.parser.get_method().decode("ascii")
        scope["http_version"] = version
        scope["path"] = unquote(path) if "%" in path else path
        scope["raw_path"] = url.path
        scope["query_string"] = url.query or b""
        earlier = self.cycle
        self.cycle = Exchange(
            scope=scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=False,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=self.expect_100_continue,
            keep_alive=version != "1.0" and self.parser.should_keep_alive(),
            on_response=self.on_response_complete,
        )
        if earlier is None or earlier.response_complete:
            self._start_asgi_task(self.cycle, self.app)
        else:  # the client did not wait for the answer before
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, self.app))

    def on_message_complete(self) -> None:
        """The body is whole."""
        self._in_request = False
        self._disarm()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """As uvicorn does it, but with one timer for all pauses of a connection, not one for each."""
        if self.transport.is_closing():
            return
        self._idle_since = self.loop.time()
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        elif self._idle_timer is None:
            self._idle_timer = self.loop.call_later(IDLE_S, self._check_idle)

    def _check_idle(self) -> None:
        self._idle_timer = None
        if self._in_request or not self.cycle.response_complete:
            return  # the end of the answer sets it again
        end = self._idle_since + IDLE_S
        if end > self.loop.time():
            self._idle_timer = self.loop.call_at(end, self._check_idle)
        else:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client left."""
        self._disarm()
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        super().connection_lost(exc)
        if self.left is not None:
            self.left()

    @property
    def stalled(self) -> bool:
        """The client does not take what is sent."""
        return self.flow.write_paused

    def abort(self) -> None:
        """Close at once, whatever was still to be sent."""
        self.transport.abort()

    def watch(self, left: Callable[[], None] | None) -> None:
        """Call `left` when the client leaves; None: no more."""
        self.left = left
        if left is not None:
            self.flow.resume_reading()  # held back by a large body; whoever does not read sees no end

    def send_400_response(self, msg: str) -> None:
        """What is not HTTP is answered in the shape of everything else."""
        self._refuse(400, f"this is not a valid HTTP request: {msg}")

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refuse(self, status: int, message: str) -> None:
        if self.transport.is_closing():
            return
        body = faults.openai_body(faults.invalid(message, status=status))
        head = (
            f"HTTP/1.1 {status} Refused\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()


class Listener:
    """Serves an application on a free loopback port while entered."""

    def __init__(self, app: GatewayApp, host: str = "127.0.0.1") -> None:
        self._config = uvicorn.Config(
            app,
            http=Connection,
            ws="none",
            lifespan="off",
            loop="none",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
        )
        self._host = host
        self._state = ServerState()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> LocalAddress:
        self._config.load()
        loop = asyncio.get_running_loop()
        sock = socket.create_server((self._host, 0), backlog=4096)
        # Accepted connections inherit it; asyncio itself sets it only where the socket names its protocol.
        # Without it a reply of two writes waits 40 ms for the client's delayed acknowledgement.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._server = await loop.create_server(self._connection, sock=sock)
        return LocalAddress(host=self._host, port=sock.getsockname()[1])

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.close()
        for connection in list(self._state.connections):
            connection.shutdown()
        tasks = list(self._state.tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=5.0)

    def _connection(self) -> asyncio.Protocol:
        state: dict[str, Any] = {}
        return Connection(config=self._config, server_state=self._state, app_state=state)
