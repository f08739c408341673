"""A model that says what it was told to say."""

from __future__ import annotations

import json
from collections.abc import Sequence

from orchard_core.gateway.contract import SessionContext, UpstreamRequest
from orchard_core.testing.fakes.reply import FakeReply
from orchard_core.testing.fakes.upstream import FakeUpstream, NextReply
from orchard_core.types.model import Price, UpstreamMode


class FakeModel:
    """Honours `orchard_core.Model`. Each session hears `replies` from the first one on; after the last, and
    for a model given none, `otherwise` answers. `side` answers requests that offer no tools, such as one for
    a title; without it they are answered like all others."""

    def __init__(
        self,
        replies: Sequence[FakeReply | str] = (),
        *,
        otherwise: FakeReply | NextReply = FakeReply(text="done"),  # noqa: B008 - frozen
        side: FakeReply | None = None,
        name: str = "fake",
        price: Price | None = Price(input=0.0, output=0.0),  # noqa: B008 - frozen
        concurrency: int | None = None,
        mode: UpstreamMode = UpstreamMode.CHAT,
    ) -> None:
        self._replies = [FakeReply(text=reply) if isinstance(reply, str) else reply for reply in replies]
        self._otherwise = otherwise
        self._side = side
        self._name = name
        self._price = price
        self._concurrency = concurrency
        self._mode = mode
        self.contexts: list[SessionContext] = []
        """The contexts of every session opened."""
        self.upstreams: list[FakeUpstream] = []
        """The upstreams given out, in the order of `contexts`."""
        self.closed = False
        """`close` was called."""

    @property
    def name(self) -> str:
        """See Model."""
        return self._name

    @property
    def price(self) -> Price | None:
        """See Model."""
        return self._price

    @property
    def concurrency(self) -> int | None:
        """See Model."""
        return self._concurrency

    def upstream(self, context: SessionContext) -> FakeUpstream:
        """See Model."""
        left = iter(self._replies)

        def next_reply(request: UpstreamRequest) -> FakeReply:
            otherwise = self._otherwise
            if self._side is not None and not _offers_tools(request):
                return self._side
            reply = next(left, None)
            if reply is not None:
                return reply
            return otherwise if isinstance(otherwise, FakeReply) else otherwise(request)

        self.contexts.append(context)
        self.upstreams.append(FakeUpstream(next_reply, mode=self._mode))
        return self.upstreams[-1]

    async def close(self) -> None:
        """See Model."""
        self.closed = True


def _offers_tools(request: UpstreamRequest) -> bool:
    return bool(json.loads(request.body).get("tools"))
