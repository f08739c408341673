"""Runs that an estimator refuses as a whole, such as those of a harness that cannot be replayed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

from orchard_core.datasets.credit.candidates import Standing, read_item
from orchard_core.datasets.credit.estimator import Estimator
from orchard_core.datasets.credit.head import CreditHead
from orchard_core.datasets.credit.target import Target, is_done
from orchard_core.errors import CreditRefused


@dataclass(slots=True, kw_only=True)
class Refusals:
    """Asks an estimator before each target's work; those that it refuses are left out."""

    estimator: Estimator
    """Who is asked."""
    head: CreditHead
    """What each directory of credits says of itself."""
    threshold: float
    """A score of at least this has passed."""
    retry_failed: bool = False
    """Whether credits with an error are tried again."""
    reasons: dict[Path, str] = field(default_factory=dict)
    """Why, by the run or dataset."""
    _first: CreditRefused | None = None

    async def leave_out(self, target: Target) -> bool:
        """Whether the estimator refuses the first rollout of it that is to be estimated.

        Raises ConfigError when credits that are there have other settings, DatasetCorrupt.
        """
        before = target.before(self.head)
        for candidate in target.candidates():
            if candidate.standing(self.threshold) is not Standing.UNRESOLVED:
                continue
            if is_done(candidate, before.get(candidate.rollout), retry_failed=self.retry_failed):
                continue
            item = await asyncio.to_thread(read_item, candidate)
            if isinstance(item, str):
                continue
            try:
                await self.estimator.plan([item])
            except CreditRefused as error:
                self._first = self._first or error
                self.reasons[target.source.path] = error.message
            break
        return target.source.path in self.reasons

    def check(self, targets: int) -> None:
        """Raises the first refusal when every one of so many targets was left out."""
        if self._first is not None and len(self.reasons) >= targets:
            raise self._first
