"""An HTTP proxy on the driver's side: the only way from a sandbox to the internet.

It takes CONNECT and absolute-form requests, resolves names itself, and connects to the very address it has
checked, so that a name that changes its mind between check and connection gains nothing.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from orchard_core.sandbox.egress.policy import Address, EgressPolicy, is_public, normal_name
from orchard_core.sandbox.egress.request import ProxyRequest, RequestRefused, read_request
from orchard_core.sandbox.unix_socket import listen_at

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Resolve = Callable[[str, int], Awaitable[Sequence[Address]]]

_CONNECT_S = 15.0
_RESOLVE_S = 10.0
_HEADER_S = 30.0
_IDLE_S = 600.0
_PIECE = 64 * 1024
_CONNECTIONS_MAX = 256


async def resolve_by_system(host: str, port: int) -> Sequence[Address]:
    """Every address of a name, by the host's own resolver."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in found]


class EgressProxy:
    """Listens on a Unix socket, to which a tunnel leads from inside."""

    def __init__(
        self,
        policy: EgressPolicy,
        *,
        resolve: Resolve = resolve_by_system,
        permits: Callable[[Address], bool] = is_public,
    ) -> None:
        """`resolve` and `permits` are seams for networks with their own name service or address plan."""
        self._policy = policy
        self._resolve = resolve
        self._permits = permits
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.refused = 0
        """Requests turned away so far."""

    async def start(self, path: Path) -> None:
        """Listen. Raises OSError when the socket cannot be made."""
        self._server = await asyncio.start_unix_server(self._accept, sock=listen_at(path), limit=_PIECE)

    async def close(self) -> None:
        """End the listener and every connection."""
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            if len(self._tasks) > _CONNECTIONS_MAX:
                await _answer(writer, 503, "too many connections from this sandbox")
            else:
                await self._serve(reader, writer)
        except (OSError, EOFError, TimeoutError):
            return
        finally:
            self._tasks.discard(task)
            writer.transport.abort() if writer.transport.is_closing() else writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_HEADER_S):
                request = await read_request(reader)
            outer = await self._connect(request)
        except RequestRefused as refusal:
            self.refused += 1
            await _answer(writer, refusal.status, refusal.reason)
            return
        try:
            if request.head:
                outer[1].write(request.head)
            else:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await _join((reader, writer), outer)
        finally:
            outer[1].close()

    async def _connect(self, request: ProxyRequest) -> Streams:
        reason = self._policy.refuses(request.host, request.port)
        if reason is not None:
            raise RequestRefused(403, reason)
        addresses = await self._addresses(request)
        allowed = [address for address in addresses if self._permits(address)]
        if not allowed:
            raise RequestRefused(403, f"{request.host} has no public address")
        for address in allowed:
            try:
                async with asyncio.timeout(_CONNECT_S):
                    return await asyncio.open_connection(str(address), request.port, limit=_PIECE)
            except (OSError, TimeoutError):
                continue
        raise RequestRefused(502, f"{request.host}:{request.port} does not answer")

    async def _addresses(self, request: ProxyRequest) -> Sequence[Address]:
        name = normal_name(request.host)
        try:
            return [ipaddress.ip_address(name)]
        except ValueError:
            pass
        try:
            async with asyncio.timeout(_RESOLVE_S):
                return await self._resolve(name, request.port)
        except (OSError, UnicodeError, TimeoutError):
            raise RequestRefused(502, f"{request.host} cannot be resolved") from None


async def _answer(writer: asyncio.StreamWriter, status: int, reason: str) -> None:
    body = f"orchard: {reason}\n".encode("ascii", "replace")
    head = f"HTTP/1.1 {status} Refused\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n"
    writer.write(head.encode() + b"Connection: close\r\n\r\n" + body)
    await writer.drain()


async def _join(inner: Streams, outer: Streams) -> None:
    """Copy both ways; the end of one direction is passed on while the other still flows."""
    async with asyncio.TaskGroup() as group:
        group.create_task(_copy(inner[0], outer[1]))
        group.create_task(_copy(outer[0], inner[1]))


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    try:
        while True:
            async with asyncio.timeout(_IDLE_S):
                piece = await source.read(_PIECE)
            if not piece:
                break
            target.write(piece)
            await target.drain()
        if target.can_write_eof():
            target.write_eof()
    except (OSError, TimeoutError):
        target.transport.abort()
