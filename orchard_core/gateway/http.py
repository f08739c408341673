"""Small pieces of HTTP over ASGI."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from contextlib import suppress
from typing import Any, Protocol

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_JSON = (b"content-type", b"application/json")
_STREAM = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")]
_FINAL = (b"x-should-retry", b"false")
"""Clients of both vendors obey it. What is worth repeating has been repeated here already."""


class BodyTooLarge(Exception):
    """The request's body is over the limit."""


class ClientGone(Exception):
    """The client left before its request was whole, or takes no answer."""


CLIENT = "orchard.client"
"""Key of a scope: the Client."""


class Client(Protocol):
    """The connection that a request came by."""

    @property
    def stalled(self) -> bool:
        """The client does not take what is sent, so that the next piece would wait."""

    def abort(self) -> None:
        """Close at once, whatever was still to be sent."""

    def watch(self, left: Callable[[], None] | None) -> None:
        """Call `left` when the client leaves; None: no more."""


CLOSE = (b"connection", b"close")
"""Header of an answer after which the connection ends."""


def bounded(send: Send, client: Client, limit_s: float) -> Send:
    """The same, but a client that takes nothing for `limit_s` seconds is cut off, and ClientGone raised."""

    async def bounded_send(message: MutableMapping[str, Any]) -> None:
        if not client.stalled:
            await send(message)  # waits for nothing
            return
        try:
            async with asyncio.timeout(limit_s):
                await send(message)
        except TimeoutError:
            client.abort()
            raise ClientGone from None

    return bounded_send


async def read_body(receive: Receive, *, limit: int) -> bytes:
    """The whole body. Raises BodyTooLarge, ClientGone. The listener bounds the time it may take."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > limit:
            raise BodyTooLarge
        if not message.get("more_body", False):
            return parts[0] if len(parts) == 1 else b"".join(parts)


def lingering(send: Send, receive: Receive, *, limit: int) -> Send:
    """The same, but after the whole answer the client is heard out, for LINGER_S and `limit` bytes at most:
    to close on a client that still sends resets the connection, and it never reads the answer."""

    async def lingering_send(message: MutableMapping[str, Any]) -> None:
        if message["type"] != "http.response.body" or message.get("more_body", False):
            await send(message)
            return
        await send({**message, "more_body": True})
        with suppress(TimeoutError, ClientGone):
            async with asyncio.timeout(LINGER_S):
                await _discard(receive, limit)
        await send({"type": "http.response.body", "body": b""})

    return lingering_send


LINGER_S = 10.0
"""How long a client that was refused in mid-request is heard out, seconds."""


async def _discard(receive: Receive, limit: int) -> None:
    left, more = limit, True
    while more and left > 0:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        left -= len(message.get("body", b""))
        more = message.get("more_body", False)


async def send_json(
    send: Send, status: int, body: bytes, headers: Iterable[tuple[bytes, bytes]] = ()
) -> None:
    """A whole JSON answer."""
    length = (b"content-length", b"%d" % len(body))
    await send({"type": "http.response.start", "status": status, "headers": [_JSON, length, *headers]})
    await send({"type": "http.response.body", "body": body})


async def send_fault(send: Send, status: int, body: bytes, *, close: bool = False) -> None:
    """An error answer."""
    await send_json(send, status, body, [_FINAL, CLOSE] if close else [_FINAL])


async def start_stream(send: Send) -> None:
    """Begin server-sent events."""
    await send({"type": "http.response.start", "status": 200, "headers": _STREAM})


async def send_events(send: Send, framed: bytes, *, more: bool = True) -> None:
    """Events, framed already."""
    await send({"type": "http.response.body", "body": framed, "more_body": more})
