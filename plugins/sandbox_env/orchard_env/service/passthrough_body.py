"""A request's body on its way to an agent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from starlette.types import Receive, Scope

from orchard_env.service.faults import RequestInvalid, RequestTooSlow

WHOLE = 256 * 1024
"""A body up to this size is sent in one piece, and can be sent again."""
STEP_S = 60.0
"""A body that makes no progress for so long is given up."""


class ClientLeft(Exception):
    """The client closed its connection; nobody is left to be answered."""


class Incoming:
    """The body of one request."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        """Raises RequestInvalid for a length that is no number."""
        self._receive = receive
        self.size = _size(scope)
        """What the client says it sends; None for a body in chunks."""
        self.whole = asyncio.Event()
        """Set when all of it was read."""

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """The body as it arrives. Raises ClientLeft, RequestTooSlow."""
        more = True
        while more:
            try:
                async with asyncio.timeout(STEP_S):
                    message = await self._receive()
            except TimeoutError:
                raise RequestTooSlow(
                    f"no byte of the request's body came for {STEP_S:g} s", hint="send it without pauses"
                ) from None
            if message["type"] == "http.disconnect":
                raise ClientLeft
            more = message.get("more_body", False)
            if message.get("body"):
                yield message["body"]
        self.whole.set()

    async def read(self) -> bytes:
        """The whole body, of a request whose size is known to be small. Raises as `pieces`."""
        return b"".join([piece async for piece in self.pieces()])

    @property
    def small(self) -> bool:
        """It can be held in memory."""
        return self.size is not None and self.size <= WHOLE

    async def left(self) -> None:
        """Returns when the client leaves, which can be seen once the body was read."""
        await self.whole.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass


def _size(scope: Scope) -> int | None:
    said = [value for name, value in scope["headers"] if name == b"content-length"]
    chunked = any(name == b"transfer-encoding" for name, _ in scope["headers"])
    if not said:
        return None if chunked else 0
    if len(said) > 1 or chunked or not said[0].isdigit():
        raise RequestInvalid(
            "the request tells its length in two ways, or not as a number",
            status=400,
            hint="send one Content-Length, or Transfer-Encoding: chunked alone",
        )
    return int(said[0])
