"""What an estimator of credit gives: a price before it starts, and one Credit for each unresolved rollout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from pydantic import JsonValue

from orchard_core.types.credit import Credit
from orchard_core.types.dataset import DatasetRow
from orchard_core.types.rollout import Rollout


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One unresolved rollout to be given credit."""

    row: DatasetRow
    """Its main conversation: T turns are its T assistant messages, in order."""
    run: Path | None = None
    """The run directory it lies in; None: a row without a run."""
    rollout: Rollout | None = None
    """The whole record; None: a row without a run."""
    directory: Path | None = None
    """The directory of credits it is for, where an estimator may keep files of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostPlan:
    """What estimating credit for some items is expected to take. Plans add up."""

    items: int = 0
    """Unresolved rollouts to be estimated."""
    calls: int = 0
    """Model calls."""
    input_tokens: int = 0
    """Tokens of all prompts."""
    output_tokens: int = 0
    """Tokens of all answers."""
    rollouts: int = 0
    """Rollouts, continuations of branches among them."""
    rollouts_at_most: int = 0
    """The same when everything has to be measured that may be."""
    cost_usd: float | None = 0.0
    """US dollars; None: a price is unknown."""

    def __add__(self, other: CostPlan) -> CostPlan:
        known = self.cost_usd is not None and other.cost_usd is not None
        return CostPlan(
            items=self.items + other.items,
            calls=self.calls + other.calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            rollouts=self.rollouts + other.rollouts,
            rollouts_at_most=self.rollouts_at_most + other.rollouts_at_most,
            cost_usd=(self.cost_usd or 0.0) + (other.cost_usd or 0.0) if known else None,
        )


@runtime_checkable
class Estimator(Protocol):
    """Estimates the value curve of one unresolved rollout at a time, several at once.

    It is an async context manager in what uses it: `close` is awaited at the end, whatever happened.
    """

    @property
    def name(self) -> str:
        """What `Credit.estimator` says."""

    @property
    def settings(self) -> Mapping[str, JsonValue]:
        """What decides its results; a resumed start must have the same."""

    async def plan(self, items: Sequence[Item]) -> CostPlan:
        """What these will take, before anything starts; called with a few items at a time, in order.

        Raises CreditRefused, naming the rollout, when one can never be estimated, and ConfigError.
        """

    async def estimate(self, item: Item) -> Credit:
        """The credit, its mask included. What fails is a Credit with an `error`, never an exception: `again`
        says whether another start may try again.

        May be cancelled; what it had begun is then undone. Raises ConfigError when no item could succeed.
        """

    async def close(self) -> None:
        """Give back what is held."""
