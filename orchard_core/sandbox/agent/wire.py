"""One HTTP/1.1 connection to an agent: just what its protocol uses, at little cost a call."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from contextlib import asynccontextmanager

from orchard_core.errors import FileError, NotAnAgent, SandboxConnectionLost
from orchard_core.sandbox.agent.address import Streams

PIECE = 256 * 1024
"""Bytes moved at once."""
PROGRESS_S = 75.0
"""No read or write waits longer than this without any progress."""
WHOLE_S = 600.0
"""An answer that is read whole is whole by then, or is given up: one byte a minute is progress, too."""
ANSWER_MAX = 64 << 20
"""Bytes of an answer that is read whole."""
HEAD_MAX = 64 << 10
"""Bytes of an answer's status line and headers."""
_TRAILERS_MAX = 64
_STATUS = re.compile("[1-9][0-9]{2}")
_REPLACED = "what runs inside has ended the agent, or another listens at its address; make a new sandbox"
REFUSAL_S = 1.0
"""How long a refusal may take to arrive after the agent has stopped reading."""

Body = bytes | AsyncIterable[bytes]


@asynccontextmanager
async def progress(seconds: float = PROGRESS_S) -> AsyncIterator[None]:
    """One step on the connection: bounded in time. What breaks it is SandboxConnectionLost, and NotAnAgent
    when that is what was said."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except (OSError, EOFError) as error:  # TimeoutError is an OSError
        raise SandboxConnectionLost(
            f"the connection to the agent broke: {error!r}", hint="the sandbox may have died"
        ) from error
    except (ValueError, asyncio.LimitOverrunError) as error:  # readline makes the first of the second
        raise NotAnAgent(f"no agent answers so: {error!r}"[:200], hint=_REPLACED) from error


class Answer:
    """Status and headers of an answer; its body is read once, by `pieces` or `read`."""

    __slots__ = ("_reader", "complete", "headers", "of_service", "status")

    def __init__(self, reader: asyncio.StreamReader, status: int, headers: dict[str, str]) -> None:
        self._reader = reader
        self.status = status
        self.headers = headers
        self.complete = False
        self.of_service = False
        """A service between may have given it, and not the agent."""

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it arrives. Raises SandboxConnectionLost when it is cut."""
        if self.headers.get("transfer-encoding") == "chunked":
            async for piece in self._chunked():
                yield piece
        else:
            left = _size(self.headers.get("content-length", "0"), 10)
            while left:
                async with progress():
                    piece = await self._reader.read(min(left, PIECE))
                if not piece:
                    raise SandboxConnectionLost(f"the agent's answer was cut {left} bytes before its end")
                left -= len(piece)
                yield piece
        self.complete = True

    async def _chunked(self) -> AsyncIterator[bytes]:
        while left := _size((await self._line()).partition(b";")[0], 16):
            while left:
                async with progress():
                    piece = await self._reader.read(min(left, PIECE))
                if not piece:
                    raise SandboxConnectionLost("the agent's answer was cut")
                left -= len(piece)
                yield piece
            await self._line()
        left = HEAD_MAX
        for _ in range(_TRAILERS_MAX):
            line = await self._line()
            if not line:
                return
            left -= len(line)
            if left < 0:
                break
            name, _, value = line.decode("latin-1").partition(":")
            self.headers[name.lower()] = value.strip()
        raise NotAnAgent("the agent's answer has no end of trailers")

    async def _line(self) -> bytes:
        async with progress():
            line = await self._reader.readline()
        if not line.endswith(b"\n"):
            raise SandboxConnectionLost("the agent's answer was cut")
        return line.strip()

    async def read(self, limit: int = ANSWER_MAX) -> bytes:
        """The whole body. Raises FileError when it has more than `limit` bytes."""
        length = self.headers.get("content-length")
        if length is not None and (size := _size(length, 10)) <= min(PIECE, limit):
            async with progress():
                body = await self._reader.readexactly(size)
            self.complete = True
            return body
        whole = bytearray()
        async with progress(WHOLE_S):
            async for piece in self.pieces():
                whole += piece
                if len(whole) > limit:
                    raise FileError(
                        f"the sandbox's answer has more than {limit} bytes",
                        hint="ask for less: a smaller directory, or a file in pieces",
                    )
        return bytes(whole)


def _size(said: bytes | str, base: int) -> int:
    try:
        size = int(said, base)
    except ValueError:
        size = -1
    if size < 0:
        raise NotAnAgent(f"no agent's answer has the length {said[:40]!r}", hint=_REPLACED)
    return size


class Connection:
    """A connection that carries one call at a time."""

    __slots__ = ("_host", "reader", "reused", "writer")

    def __init__(self, streams: Streams, *, host: str = "agent") -> None:
        """`host` is what the header Host says; an agent reads none."""
        self.reader, self.writer = streams
        self._host = host
        self.reused = False

    @property
    def usable(self) -> bool:
        """Still open as far as can be seen, and with nothing unread on it."""
        return not self.reader.at_eof() and not self.writer.is_closing()

    def close(self) -> None:
        """Drop it at once."""
        self.writer.transport.abort()

    async def call(
        self, method: str, target: str, headers: Mapping[str, str], body: Body, patience: float
    ) -> Answer:
        """Send a request and read the head of its answer, which must begin within `patience` seconds.

        A streamed body is sent in chunks, unless the headers tell its Content-Length."""
        lines = [
            f"{method} {target} HTTP/1.1",
            f"Host: {self._host}",
            *(f"{k}: {v}" for k, v in headers.items()),
        ]
        if isinstance(body, bytes):
            if body or method in ("POST", "PUT"):
                lines.append(f"Content-Length: {len(body)}")
            head = "\r\n".join([*lines, "\r\n"]).encode("latin-1")
            small = len(body) <= PIECE
            self.writer.write(head + body if small else head)
            if small:
                async with progress(patience):
                    return await self._head()
            body = _sliced(body)
        else:
            told = "Content-Length" in headers
            head_lines = [*lines, "\r\n"] if told else [*lines, "Transfer-Encoding: chunked", "\r\n"]
            self.writer.write("\r\n".join(head_lines).encode("latin-1"))
            body = body if told else _framed(body)
        return await self._stream(body, patience)

    async def _stream(self, body: AsyncIterable[bytes], patience: float) -> Answer:
        """Send while listening: an agent that refuses answers before the body has ended."""
        head = asyncio.create_task(self._head())
        try:
            async for piece in body:
                if head.done():
                    break
                self.writer.write(piece)
                async with progress():
                    await self.writer.drain()
            async with progress(patience):
                return await asyncio.shield(head)
        except SandboxConnectionLost:
            async with progress(REFUSAL_S):
                return await head  # the refusal may have arrived before the break
        finally:
            if not head.done():
                head.cancel()

    async def _head(self) -> Answer:
        raw = await self.reader.readuntil(b"\r\n\r\n")
        if len(raw) > HEAD_MAX:
            raise NotAnAgent(f"the head of the agent's answer has {len(raw)} bytes", hint=_REPLACED)
        first, *lines = raw.decode("latin-1").split("\r\n")
        parts = first.split(" ", 2)
        if len(parts) < 2 or not parts[0].startswith("HTTP/1.") or not _STATUS.fullmatch(parts[1]):
            raise NotAnAgent(f"no agent answers there, but what says {first[:80]!r}", hint=_REPLACED)
        headers = {}
        for line in lines:
            name, colon, value = line.partition(":")
            if colon:
                headers[name.lower()] = value.strip()
        return Answer(self.reader, int(parts[1]), headers)


async def _sliced(body: bytes) -> AsyncIterator[bytes]:
    view = memoryview(body)
    for start in range(0, len(body), PIECE):
        yield bytes(view[start : start + PIECE])


async def _framed(body: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    async for piece in body:
        if piece:
            yield b"%x\r\n" % len(piece)
            yield piece
            yield b"\r\n"
    yield b"0\r\n\r\n"
