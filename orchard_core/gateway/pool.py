"""Connections to one model server: made when needed, kept while they are good."""

from __future__ import annotations

import asyncio
import ssl
from base64 import b64encode
from collections import deque
from collections.abc import Mapping
from time import monotonic
from types import TracebackType
from urllib.parse import SplitResult, unquote, urlsplit

from orchard_core.errors import ModelUnavailable
from orchard_core.gateway.proxy_env import proxy_for
from orchard_core.gateway.wire import Connection, Response

FRESH_S = 30.0
"""A connection idle for longer, seconds, is not used again: servers close theirs about then."""

IDLE_MAX = 512
"""Idle connections kept at most."""


class Pool:
    """Posts to one URL."""

    def __init__(self, url: str, headers: Mapping[str, str], *, connect_timeout_s: float) -> None:
        self._url = urlsplit(url)
        self.name = f"{self._url.scheme}://{self._host}{self._url.path}"
        self._connect_timeout_s = connect_timeout_s
        self._idle: deque[tuple[Connection, float]] = deque()
        self._tls: ssl.SSLContext | None = None
        proxy = proxy_for(url)
        self._proxy = urlsplit(proxy) if proxy else None
        self._head = self._request_head(headers)

    @property
    def _host(self) -> str:
        """Host and port without user and password."""
        return self._url.netloc.rpartition("@")[2]

    def _request_head(self, headers: Mapping[str, str]) -> bytes:
        target = self._url.path + (f"?{self._url.query}" if self._url.query else "")
        sent = {"Host": self._host, "Content-Type": "application/json", "Accept-Encoding": "identity"}
        sent |= _basic("Authorization", self._url)
        if self._proxy is not None and self._url.scheme == "http":
            target = f"http://{self._host}{target}"
            sent |= _basic("Proxy-Authorization", self._proxy)
        lines = [
            f"POST {target} HTTP/1.1",
            *(f"{name}: {value}" for name, value in {**sent, **headers}.items()),
        ]
        return "\r\n".join(lines).encode("latin-1")

    def post(self, body: bytes, headers: Mapping[str, str] | None = None) -> Post:
        """One exchange, not begun yet, with further headers."""
        head = self._head
        if headers:
            head += "".join(f"\r\n{name}: {value}" for name, value in headers.items()).encode("latin-1")
        return Post(self, b"%b\r\nContent-Length: %d\r\n\r\n%b" % (head, len(body), body))

    def keep(self, connection: Connection) -> None:
        """An exchange is over: another may use its connection."""
        if connection.usable and len(self._idle) < IDLE_MAX:
            self._idle.append((connection, monotonic()))

    async def begin(self, data: bytes) -> tuple[Connection, Response]:
        while True:
            connection = self._kept() or await self._connect()
            used, response = connection.used, connection.send(data)
            try:
                await response.head()
            except ModelUnavailable:
                connection.finish()
                if used and not response.begun:
                    continue  # the server closed an idle connection just as it was used: not a failure of its
                raise
            except BaseException:
                connection.finish()
                raise
            return connection, response

    def _kept(self) -> Connection | None:
        while self._idle:
            connection, since = self._idle.pop()
            if connection.usable and monotonic() - since < FRESH_S:
                return connection
            connection.abort()
        return None

    async def _connect(self) -> Connection:
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                return await self._dial()
        except TimeoutError as error:
            raise ModelUnavailable(
                f"{self.name} could not be reached within {self._connect_timeout_s:g} s",
                hint="is the server running, and reachable from here?",
            ) from error
        except (OSError, EOFError, asyncio.LimitOverrunError) as error:
            raise ModelUnavailable(
                f"{self.name} could not be reached: {error}",
                hint="is the server running, and is the base URL right?",
            ) from error

    async def _dial(self) -> Connection:
        loop = asyncio.get_running_loop()
        connection = Connection(self.name)
        host, secure = self._url.hostname or "", self._url.scheme == "https"
        if self._proxy is not None and secure:
            await self._tunnel(connection, host)
            return connection
        to = self._proxy or self._url
        await loop.create_connection(
            lambda: connection,
            to.hostname or "",
            to.port or (443 if secure else 80),
            ssl=self._context() if secure else None,
            server_hostname=host if secure else None,
        )
        return connection

    async def _tunnel(self, connection: Connection, host: str) -> None:
        """Reach the server through an HTTP proxy's CONNECT."""
        assert self._proxy is not None
        reader, writer = await asyncio.open_connection(self._proxy.hostname, self._proxy.port or 80)
        port = self._url.port or 443
        auth = "".join(f"{n}: {v}\r\n" for n, v in _basic("Proxy-Authorization", self._proxy).items())
        writer.write(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n{auth}\r\n".encode("latin-1"))
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            if head.split(b" ", 2)[1:2] != [b"200"]:
                raise OSError(f"the proxy answered {head.splitlines()[0].decode('latin-1')}")
            await writer.start_tls(self._context(), server_hostname=host)
        except BaseException:
            writer.close()
            raise
        writer.transport.set_protocol(connection)
        connection.connection_made(writer.transport)

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls

    def close(self) -> None:
        """Drop all idle connections."""
        while self._idle:
            self._idle.pop()[0].abort()


class Post:
    """One request and its answer. What was begun must be ended; `async with` does both."""

    __slots__ = ("_connection", "_data", "_pool", "response")

    response: Response
    """The answer, once begun."""

    def __init__(self, pool: Pool, data: bytes) -> None:
        self._pool = pool
        self._data = data

    async def begin(self) -> Response:
        """An answer whose head has come. Raises ModelUnavailable, ModelReplyMalformed."""
        self._connection, self.response = await self._pool.begin(self._data)
        return self.response

    def end(self) -> None:
        """Nothing more is read of the answer."""
        self._connection.finish()
        self._pool.keep(self._connection)

    async def __aenter__(self) -> Response:
        return await self.begin()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()


def _basic(header: str, url: SplitResult) -> dict[str, str]:
    """The header for a URL that carries user and password."""
    if url.username is None:
        return {}
    pair = f"{unquote(url.username)}:{unquote(url.password or '')}"
    return {header: f"Basic {b64encode(pair.encode()).decode()}"}
