"""A port of its own for GET /metrics, for a Prometheus that has no key."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from orchard_core import ConfigError
from orchard_env.service.log import SERVICE

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""What Prometheus reads."""
_PATIENCE_S = 10.0
_LONGEST = 16 << 10
_AT_ONCE = 32


@asynccontextmanager
async def metrics_listener(address: str, exposition: Callable[[], bytes]) -> AsyncIterator[str]:
    """Answer until it is left; gives the address as `HOST:PORT`. Raises ConfigError."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit():
        raise ConfigError(f"observe.listen: {address!r} is no address", hint="write HOST:PORT")
    answers = _Answers(exposition)
    try:
        server = await asyncio.start_server(
            answers.serve, host.strip("[]") or None, int(port), limit=_LONGEST
        )
    except (OSError, OverflowError) as error:
        raise ConfigError(
            f"observe.listen: cannot listen on {address}: {error}", hint="choose a port that is free"
        ) from error
    bound = server.sockets[0].getsockname()
    SERVICE.info("metrics are told at %s port %d without a key", bound[0], bound[1])
    try:
        yield f"{bound[0]}:{bound[1]}"
    finally:
        server.close()
        await answers.end()


class _Answers:
    """One request a connection, within bounds."""

    def __init__(self, exposition: Callable[[], bytes]) -> None:
        self._exposition = exposition
        self._open: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            async with asyncio.timeout(_PATIENCE_S):
                if len(self._open) <= _AT_ONCE:
                    asked = await reader.readuntil(b"\r\n\r\n")
                    writer.write(self._answer(asked))
                    await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return  # whoever it was, it asked for nothing that is here
        finally:
            self._open.discard(task)
            writer.close()

    def _answer(self, asked: bytes) -> bytes:
        method, _, rest = asked.partition(b"\r\n")[0].partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0]
        if (method, path) != (b"GET", b"/metrics"):
            return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        body = self._exposition()
        head = (
            f"HTTP/1.1 200 OK\r\nContent-Type: {CONTENT_TYPE}\r\nContent-Length: {len(body)}\r\n"
            "X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
        )
        return head.encode() + body

    async def end(self) -> None:
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
