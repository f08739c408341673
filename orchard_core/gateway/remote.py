"""A model server over HTTP that speaks one dialect or several, each at a URL of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

from orchard_core.gateway.chat.endpoint import ChatEndpoint
from orchard_core.gateway.contract import UpstreamReply, UpstreamRequest
from orchard_core.gateway.endpoint import Endpoint
from orchard_core.types.model import Dialect, UpstreamMode


class RemoteUpstream:
    """Honours `orchard_core.Upstream`, and counts tokens where the server does."""

    def __init__(
        self, endpoints: Mapping[Dialect, ChatEndpoint | Endpoint], counter: Endpoint | None = None
    ) -> None:
        """`counter` is where the tokens of a messages request are counted; None: nowhere."""
        self._endpoints = endpoints
        self._counter = counter

    @property
    def mode(self) -> UpstreamMode:
        """`chat` until the server turns out not to tell ids."""
        chat = self._endpoints.get(Dialect.CHAT)
        return UpstreamMode.CHAT if isinstance(chat, ChatEndpoint) and chat.tells else UpstreamMode.TEXT

    @property
    def dialects(self) -> frozenset[Dialect]:
        """Those that have a URL."""
        return frozenset(self._endpoints)

    async def complete(self, request: UpstreamRequest) -> UpstreamReply:
        """The whole answer."""
        return await self._endpoints[request.dialect].complete(request)

    def stream(self, request: UpstreamRequest) -> AsyncIterator[bytes]:
        """The answer's events."""
        return self._endpoints[request.dialect].stream(request)

    async def count_tokens(self, request: UpstreamRequest) -> bytes | None:
        """The server's own answer to how many tokens a messages request has; None where none counts."""
        return None if self._counter is None else (await self._counter.complete(request)).body

    async def close(self) -> None:
        """Close the connections."""
        for endpoint in (*self._endpoints.values(), *([self._counter] if self._counter else [])):
            endpoint.close()
