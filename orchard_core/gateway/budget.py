"""What a session may still spend."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic

from orchard_core.errors import BudgetExceeded
from orchard_core.gateway.waits import Waits
from orchard_core.types.harness import Limits
from orchard_core.types.model import Usage

_UNITS = {"tokens": "tokens", "calls": "calls", "cost": "US dollars", "wall_clock": "s"}


@dataclass(slots=True, kw_only=True)
class Budget:
    """Limits of one session beside what it has used.

    A call counts when it begins, its tokens and its cost when it is over: calls that are under way when these
    run out still end, and go over the limit together.
    """

    limits: Limits
    """The bounds."""
    waits: Waits
    """Time taken off the wall clock."""
    opened: float
    """When the session began (monotonic), seconds."""
    tokens: int = 0
    """Input and output tokens so far."""
    calls: int = 0
    """Calls begun so far."""
    cost_usd: float = 0.0
    """US dollars so far, of calls whose cost is known."""

    def spend(self, usage: Usage, cost_usd: float | None) -> None:
        """A call is over."""
        self.tokens += usage.total
        self.cost_usd += cost_usd or 0.0

    def exhausted(self) -> BudgetExceeded | None:
        """The first bound that forbids a further call."""
        wall = monotonic() - self.opened - self.waits.total_s
        bounds = (
            ("calls", self.limits.calls, self.calls),
            ("tokens", self.limits.tokens, self.tokens),
            ("cost", self.limits.cost_usd, self.cost_usd),
            ("wall_clock", self.limits.wall_clock_s, wall),
        )
        for kind, limit, used in bounds:
            if limit is not None and used >= limit:
                return BudgetExceeded(
                    f"the rollout's {kind} budget is used up: {used:g} of {limit:g} {_UNITS[kind]}",
                    kind=kind,
                    limit=limit,
                    used=used,
                )
        return None
