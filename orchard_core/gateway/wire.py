"""One HTTP/1.1 exchange with a model server on a raw connection.

aiohttp's client costs more per call than all the rest of the gateway together; a model server needs one
method, one path and a body both ways.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator

import httptools

from orchard_core.errors import ModelError, ModelReplyMalformed, ModelTimeout, ModelUnavailable

HELD = 1 << 20
"""Bytes of an answer held unread before the server is told to wait."""

DRAIN_S = 0.05
"""How long the end of a body that is no longer needed is waited for, seconds."""

MAX_REPLY = 256 << 20
"""Bytes of one whole answer at most."""


class Response:
    """An answer as it comes."""

    __slots__ = (
        "_connection",
        "_held",
        "_pieces",
        "_waiter",
        "begun",
        "complete",
        "error",
        "headers",
        "status",
    )

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._pieces: deque[bytes] = deque()
        self._held = 0
        self._waiter: asyncio.Future[None] | None = None
        self.begun = False
        self.complete = False
        self.error: ModelError | None = None
        self.headers: dict[str, str] = {}
        self.status = 0

    async def head(self) -> None:
        """Wait for status and headers. Raises ModelUnavailable, ModelReplyMalformed."""
        while not self.status:
            await self._wait(None)

    async def pieces(self, idle_s: float | None = None) -> AsyncIterator[bytes]:
        """The body. Raises ModelUnavailable when it is cut, ModelTimeout after `idle_s` without a piece."""
        while True:
            while self._pieces:
                piece = self._pieces.popleft()
                self._held -= len(piece)
                if self._held < HELD:
                    self._connection.resume()
                yield piece
            if self.complete:
                return
            await self._wait(idle_s)

    async def read(self) -> bytes:
        """The whole body. Raises as `pieces`, and ModelReplyMalformed when it is too large."""
        if self.complete and len(self._pieces) == 1:
            return self._pieces.popleft()
        parts: list[bytes] = []
        size = 0
        async for piece in self.pieces():
            parts.append(piece)
            size += len(piece)
            if size > MAX_REPLY:
                raise ModelReplyMalformed(f"the model server's answer is larger than {MAX_REPLY} bytes")
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def drain(self) -> None:
        """Read what is left, if it comes at once: the connection can then be used again."""
        try:
            async with asyncio.timeout(DRAIN_S):
                async for _ in self.pieces():
                    pass
        except (TimeoutError, ModelError):
            return

    async def _wait(self, idle_s: float | None) -> None:
        if self.error is not None:
            raise self.error
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            if idle_s is None:
                await self._waiter
            else:
                async with asyncio.timeout(idle_s):
                    await self._waiter
        except TimeoutError:
            raise ModelTimeout(
                f"the model server sent nothing for {idle_s:g} s", limit_s=idle_s or 0.0
            ) from None
        finally:
            self._waiter = None

    def wake(self) -> None:
        """Something came, or nothing will come any more."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def put(self, piece: bytes) -> None:
        """A piece of the body came."""
        self._pieces.append(piece)
        self._held += len(piece)
        if self._held > HELD:
            self._connection.pause()
        self.wake()

    def fail(self, error: ModelError) -> None:
        """It will not come to its end."""
        if not self.complete and self.error is None:
            self.error = error
            self.wake()


class Connection(asyncio.Protocol):
    """A connection that carries one exchange at a time. `name` is what error messages call the server."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.reusable = True
        self.used = False
        self._transport: asyncio.Transport | None = None
        self._parser: httptools.HttpResponseParser | None = None
        self._response: Response | None = None
        self._paused = False
        self._sized = False
        self._headers: dict[str, str] = {}

    @property
    def usable(self) -> bool:
        """Open, and between exchanges."""
        return self.reusable and self._transport is not None and not self._transport.is_closing()

    def send(self, data: bytes) -> Response:
        """Begin an exchange with the request's bytes."""
        assert self._transport is not None
        response = self._response = Response(self)
        self._parser = httptools.HttpResponseParser(self)
        self._transport.write(data)
        return response

    def finish(self) -> None:
        """The exchange is over. One that was left before its end takes the connection with it."""
        response, self._response = self._response, None
        self.used = True
        if response is None or not response.complete or not self.reusable:
            self.abort()

    def abort(self) -> None:
        """Drop the connection at once."""
        self.reusable = False
        if self._transport is not None:
            self._transport.abort()

    def pause(self) -> None:
        """Hold the server back."""
        if not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        """Let the server go on."""
        if self._paused and self._transport is not None:
            self._paused = False
            if not self._transport.is_closing():
                self._transport.resume_reading()

    # What asyncio and httptools call

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The server is reached."""
        assert isinstance(transport, asyncio.Transport) or hasattr(transport, "write")
        self._transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        response = self._response
        if response is None or self._parser is None:
            self.abort()
            return
        response.begun = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._broken(response, "it switches protocols")
        except httptools.HttpParserError as error:
            self._broken(response, str(error))

    def _broken(self, response: Response, why: str) -> None:
        self.reusable = False
        response.fail(
            ModelReplyMalformed(
                f"{self.name} does not answer in HTTP: {why}", hint="is the base URL that of a model server?"
            )
        )

    def connection_lost(self, exc: Exception | None) -> None:
        """The server left."""
        self.reusable = False
        response = self._response
        if response is None or response.complete:
            return
        if response.status and not self._sized and exc is None:
            response.complete = True
            response.wake()
            return
        what = "in the middle of its answer" if response.begun else "without an answer"
        response.fail(
            ModelUnavailable(
                f"{self.name} closed the connection {what}" + (f": {exc}" if exc else ""),
                hint="look at the model server's log",
            )
        )

    def on_message_begin(self) -> None:
        """A head begins."""
        self._headers = {}

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header."""
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """The head is whole."""
        assert self._parser is not None
        status = self._parser.get_status_code()
        if status < 200 or self._response is None:
            return
        headers = self._headers
        self._sized = "content-length" in headers or "transfer-encoding" in headers
        self.reusable = self.reusable and self._sized and self._parser.should_keep_alive()
        self._response.headers = headers
        self._response.status = status
        self._response.wake()

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        if self._response is not None:
            self._response.put(body)

    def on_message_complete(self) -> None:
        """The body is whole."""
        response = self._response
        if response is not None and response.status:
            response.complete = True
            response.wake()
