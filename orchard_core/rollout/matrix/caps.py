"""Bounds over a whole matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from orchard_core.gateway.contract import Model, SessionContext
from orchard_core.rollout.session import ModelGateway, ModelSession
from orchard_core.rollout.store.entry import Spent
from orchard_core.types.base import Record
from orchard_core.types.model import ModelCall


class MatrixCaps(Record):
    """None: no bound. Reaching one stops the matrix in order; a later start with a higher one goes on."""

    cost_usd: float | None = None
    """US dollars of every model call of the matrix, earlier starts included, whose price is known."""
    tokens: int | None = None
    """Tokens of every model call of the matrix, earlier starts included."""
    time_s: float | None = None
    """Seconds that this start may take."""


class Budget:
    """Counts what the matrix uses up, call by call."""

    def __init__(self, caps: MatrixCaps, on_reached: Callable[[str], None]) -> None:
        self._caps = caps
        self._on_reached = on_reached
        self._tokens = 0
        self._cost_usd = 0.0

    def add(self, spent: Spent) -> None:
        """What earlier starts used up."""
        self._count(spent.usage.total, spent.cost_usd)

    def call(self, call: ModelCall) -> None:
        """One more model call."""
        self._count(call.usage.total, call.cost_usd)

    def _count(self, tokens: int, cost_usd: float | None) -> None:
        self._tokens += tokens
        self._cost_usd += cost_usd or 0.0
        caps = self._caps
        if caps.tokens is not None and self._tokens >= caps.tokens:
            self._on_reached(f"{self._tokens:,} tokens of {caps.tokens:,} are used up")
        elif caps.cost_usd is not None and self._cost_usd >= caps.cost_usd:
            self._on_reached(f"${self._cost_usd:,.4f} of ${caps.cost_usd:,.4f} are used up")


class MeteredGateway:
    """A gateway whose every call is counted, those of judges too."""

    def __init__(self, gateway: ModelGateway, budget: Budget) -> None:
        self._gateway = gateway
        self._budget = budget

    async def open_session(
        self,
        model: Model,
        context: SessionContext,
        *,
        on_call: Callable[[ModelCall], None] | None = None,
        **rest: Any,
    ) -> ModelSession:
        """A session of the gateway below."""

        def counted(call: ModelCall) -> None:
            self._budget.call(call)
            if on_call is not None:
                on_call(call)

        return await self._gateway.open_session(model, context, on_call=counted, **rest)
