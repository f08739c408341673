"""One rollout's private way to one model."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

from orchard_core.errors import BudgetExceeded, ModelError, SessionClosed
from orchard_core.gateway.budget import Budget
from orchard_core.gateway.call import Call
from orchard_core.gateway.contract import BeforeCall, TokenUpstream, Upstream
from orchard_core.gateway.conversation import Conversation
from orchard_core.gateway.dialect import DialectCodec, Request
from orchard_core.gateway.retry import RetryPolicy
from orchard_core.gateway.slots import Slots
from orchard_core.gateway.tools.served import ServedTools
from orchard_core.gateway.waits import Waits
from orchard_core.types.harness import Limits
from orchard_core.types.model import ModelCall, ModelEndpoint, Price, UpstreamMode
from orchard_core.types.trajectory import Trajectory

if TYPE_CHECKING:
    from orchard_core.gateway.record import CallRecord

OnCall = Callable[[ModelCall], None]
"""Called with each call once it is recorded, before the harness sees the end of its answer."""

CLOSE_S = 5.0
"""How long a closing session waits for its calls to end, seconds."""

_log = logging.getLogger("orchard.gateway")


def _token_upstream(upstream: Upstream) -> TokenUpstream | None:
    """The upstream when it works on token ids. Asked once: looking for a protocol's methods is slow."""
    if upstream.mode is UpstreamMode.TOKEN_IN and isinstance(upstream, TokenUpstream):
        return upstream
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What serves a session's calls."""

    upstream: Upstream
    """Answers them."""
    slots: Slots
    """Bounds those in flight, over all sessions of the model."""
    price: Price | None
    """Prices them; None: unknown."""
    retry: RetryPolicy
    """How often one is repeated."""
    call_timeout_s: float
    """Time for one attempt, seconds."""


class Session:
    """Records every call made with its key. Made by `Gateway.open_session`."""

    def __init__(
        self,
        *,
        id: str,  # noqa: A002 - the field's name
        endpoint: ModelEndpoint,
        service: Service,
        limits: Limits,
        before_call: BeforeCall | None,
        on_call: OnCall | None,
        tools: ServedTools,
        revoke: Callable[[], None],
        release: Callable[[], None],
    ) -> None:
        self.id = id
        self.endpoint = endpoint
        self.before_call = before_call
        self.tools = tools
        self.exhausted: BudgetExceeded | None = None
        self.last_error: ModelError | None = None
        self.conversation = Conversation()
        self.waits = Waits()
        self.budget = Budget(limits=limits, waits=self.waits, opened=monotonic())
        self.upstream, self.slots = service.upstream, service.slots
        self.dialects = service.upstream.dialects
        self.token_upstream = _token_upstream(service.upstream)
        self.retry, self.call_timeout_s = service.retry, service.call_timeout_s
        self._price = service.price
        self._on_call = on_call
        self._revoke = revoke
        self._release: Callable[[], None] | None = release
        self.requests = 0  # open ones, from the first byte of a body to the last of its answer
        self._open: set[Call] = set()
        self._records: list[CallRecord] = []
        self._calls: dict[int, ModelCall] = {}
        self._closed = False

    @property
    def waited_s(self) -> float:
        """Time during which a call waited for a slot, a rate limit, a retry or the hook, seconds."""
        return self.waits.total_s

    def begin(self, request: Request, codec: DialectCodec) -> Call:
        """A call of this session. Raises SessionClosed, BudgetExceeded."""
        if self._closed:
            raise SessionClosed("the rollout of this key has ended", hint="start a rollout to get a new one")
        if self.tools.over:
            raise SessionClosed(self.tools.over)
        exhausted = self.budget.exhausted()
        if exhausted is not None:
            self.exhausted = exhausted
            raise exhausted
        call = Call(self, request, codec, self.budget.calls)
        self.budget.calls += 1
        self._open.add(call)
        return call

    def finished(self, call: Call, error: ModelError | None) -> None:
        """A call is over: keep its record."""
        record = call.record
        record.settle(self.conversation, call.request.heard, self._price)
        self.budget.spend(record.usage, record.cost_usd)
        self.last_error = error
        self._records.append(record)
        self._open.discard(call)
        if self._on_call is not None:
            self._tell(record)

    def _tell(self, record: CallRecord) -> None:
        assert self._on_call is not None
        try:
            self._on_call(self._model_call(record))
        except Exception:  # noqa: BLE001 - border: an observer's fault must not cost the rollout its call
            _log.exception("the observer of session %s failed on call %d", self.id, record.index)

    def _model_call(self, record: CallRecord) -> ModelCall:
        call = self._calls.get(record.index)
        if call is None:
            call = self._calls[record.index] = record.model_call()
        return call

    def trajectory(self) -> Trajectory:
        """All calls recorded so far."""
        records = sorted(self._records, key=lambda record: record.index)
        return Trajectory(
            calls=tuple(self._model_call(record) for record in records),
            messages=self.conversation.message_records(),
            blobs=dict(self.conversation.blobs),
        )

    async def close(self) -> Trajectory:
        """Revoke the key, end calls in flight, and give everything that was recorded. May be repeated."""
        self._closed = True
        self._revoke()
        in_flight = list(self._open)
        for call in in_flight:
            call.end("the rollout's model session was closed")
        await self.tools.close()
        if in_flight:
            ends = [asyncio.ensure_future(call.done.wait()) for call in in_flight]
            _, late = await asyncio.wait(ends, timeout=CLOSE_S)
            for waiter in late:
                waiter.cancel()
        if self._release is not None:
            self._release()
            self._release = None
        return self.trajectory()
