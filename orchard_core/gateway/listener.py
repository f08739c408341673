"""The HTTP listener: uvicorn's httptools protocol with bounds on what a hostile client may hold open.

uvicorn's own `Server` is not used: it installs signal handlers and wakes ten times a second. The protocol
alone needs neither.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from types import TracebackType
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from orchard_core.gateway import faults
from orchard_core.gateway.app import GatewayApp
from orchard_core.gateway.http import ABORT
from orchard_core.types.sandbox import LocalAddress

MAX_HEAD = 512 << 10
"""Bytes of a request's line and headers at most (a piece that also ends a former body counts whole)."""

REQUEST_S = 120.0
"""A request that is not whole so many seconds after its connection or its first byte is answered no more."""


_SILENT = logging.Logger("orchard.gateway.http", logging.CRITICAL)
"""What a hostile client sends is answered, not written to the operator's terminal; no handler hangs on it."""


class Connection(HttpToolsProtocol):
    """One client connection."""

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
        self.scope[ABORT] = self.transport.abort  # type: ignore[literal-required]

    def on_headers_complete(self) -> None:
        """The head is whole."""
        self._in_head = False
        self._head_bytes = 0
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The body is whole."""
        self._in_request = False
        self._disarm()
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client left."""
        self._disarm()
        super().connection_lost(exc)

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
        body = faults.invalid(message, status=status).body
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
            timeout_keep_alive=120,
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
