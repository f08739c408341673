"""The upstream and the model behind every scripted model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from orchard_core.gateway.contract import UpstreamReply, UpstreamRequest
from orchard_core.gateway.scripted.conversation import Conversation
from orchard_core.gateway.scripted.reply import Reply, as_chunks, as_upstream_reply
from orchard_core.types.model import Dialect, Price, UpstreamMode

Script = Callable[[Conversation], Reply]
"""Gives the answer to a request. It is asked again when a call is repeated, so it keeps no count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedUpstream:
    """Answers from a script."""

    model: str
    """Name in the answers."""
    script: Script
    """What to answer."""
    mode: UpstreamMode = UpstreamMode.TEXT
    """`chat` when the replies carry token ids."""

    @property
    def dialects(self) -> frozenset[Dialect]:
        """Chat completions only."""
        return frozenset({Dialect.CHAT})

    async def complete(self, request: UpstreamRequest) -> UpstreamReply:
        """The whole answer at once. Raises what the script raises, and ModelRejected."""
        conversation = Conversation.read(request)
        return as_upstream_reply(self.script(conversation), conversation, self.model)

    async def stream(self, request: UpstreamRequest) -> AsyncIterator[bytes]:
        """The same answer in pieces."""
        conversation = Conversation.read(request)
        for chunk in as_chunks(self.script(conversation), conversation, self.model):
            yield chunk

    async def close(self) -> None:
        """Nothing is held."""


class FreeModel:
    """What scripted models share: no bound, no connection, and a price of zero."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def name(self) -> str:
        """Name that is stored."""
        return self._name

    @property
    def price(self) -> Price | None:
        """Free, which is not the same as unknown."""
        return Price(input=0.0, output=0.0)

    @property
    def concurrency(self) -> int | None:
        """No bound."""
        return None

    async def close(self) -> None:
        """Nothing is held."""
