"""An agent's answer on its way to a client."""

from __future__ import annotations

import asyncio
import re
from http import HTTPStatus

from starlette.types import Message, Send

from orchard_core import NotAnAgent
from orchard_env.service.passthrough_body import ClientLeft

_TAKE_S = 75.0
_DOWN = frozenset(
    {"content-type", "content-length", "content-range", "accept-ranges", "etag", "last-modified"}
)
_ADDED = {"x-content-type-options": "nosniff", "cache-control": "no-store"}
_STATUSES = frozenset(status.value for status in HTTPStatus if status >= 200 and status not in (204, 304))
_OURS = (401, 421)
"""What an agent says to the service, not to its client: it is another sandbox's, or has another token."""
_NAME = re.compile(r"x-orchard-[a-z-]{1,32}")
_VALUE = re.compile(r"[\x20-\x7e]{0,1024}")


class Outgoing:
    """What an agent says is a sandbox's word: only headers of its protocol pass."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.begun = False
        """The client has got the beginning of it."""

    async def start(self, status: int, headers: dict[str, str]) -> None:
        """Status and headers. Raises NotAnAgent for what no agent says, ClientLeft."""
        length = headers.get("content-length", "0")
        if status not in _STATUSES or not re.fullmatch("[0-9]{1,18}", length):
            raise _no_agent(f"status {status}, length {length[:40]!r}")
        if status in _OURS:
            raise _no_agent("that it does not know the service's token")
        kept = {name: value for name, value in headers.items() if _passes(name, value)}
        if headers.get("transfer-encoding") == "chunked":
            kept.pop("content-length", None)
        else:
            kept["content-length"] = length
        lines = [(name.encode(), value.encode()) for name, value in (kept | _ADDED).items()]
        self.begun = True
        await self._passed({"type": "http.response.start", "status": status, "headers": lines})

    async def body(self, piece: bytes) -> None:
        """A piece of the body. Raises ClientLeft."""
        await self._passed({"type": "http.response.body", "body": piece, "more_body": True})

    async def end(self) -> None:
        """The body is whole."""
        await self._passed({"type": "http.response.body", "body": b"", "more_body": False})

    async def _passed(self, message: Message) -> None:
        """A client that takes nothing for long does not hold its sandbox."""
        try:
            async with asyncio.timeout(_TAKE_S):
                await self._send(message)
        except TimeoutError:
            raise ClientLeft from None


def _passes(name: str, value: str) -> bool:
    return (name in _DOWN or _NAME.fullmatch(name) is not None) and _VALUE.fullmatch(value) is not None


def _no_agent(said: str) -> NotAnAgent:
    return NotAnAgent(
        f"what answers at the sandbox's address is not its agent: it says {said}",
        hint="what runs inside has ended the agent, or another listens at its address; make a new sandbox",
    )
