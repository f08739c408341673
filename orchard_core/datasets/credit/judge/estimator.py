"""The estimator `judge`: a judge's key steps as a curve."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from orchard_core.datasets.credit.estimator import CostPlan, Item
from orchard_core.datasets.credit.judge.contract import Judge, Judgement
from orchard_core.datasets.credit.judge.heard import note
from orchard_core.datasets.credit.judge.view import outcome_of, view_of
from orchard_core.datasets.credit.rules import CreditRules, failed_credit
from orchard_core.types.credit import Credit

NAME = "judge"


class JudgeEstimator:
    """Honours `Estimator` with any judge."""

    name = NAME

    def __init__(self, judge: Judge, rules: CreditRules) -> None:
        self._judge = judge
        self._rules = rules

    @property
    def settings(self) -> Mapping[str, JsonValue]:
        """The judge's, and the rules of curve and segments."""
        return {**self._judge.settings, **self._rules.model_dump(mode="json")}

    async def plan(self, items: Sequence[Item]) -> CostPlan:
        """One question an item."""
        total = CostPlan()
        for item in items:
            total += await asyncio.to_thread(self._cost, item)
        return total

    def _cost(self, item: Item) -> CostPlan:
        return self._judge.cost(view_of(item), outcome_of(item))

    async def estimate(self, item: Item) -> Credit:
        """Ask the judge. Its answers are noted beside the credits, word for word."""
        view, outcome = await asyncio.to_thread(view_of, item), outcome_of(item)
        found = await self._judge.judge(view, outcome)
        if item.directory is not None and (found.answers or found.error):
            note(item.directory, view.rollout, found)
        return self._credit(view.rollout, len(view.turns), found)

    def _credit(self, rollout: str, turns: int, found: Judgement) -> Credit:
        if found.error:
            return self._failed(rollout, turns, found, found.error)
        try:
            curve = self._rules.curve(found.steps, turns)
        except ValueError as error:  # a judge of someone's own
            return self._failed(rollout, turns, found, f"the judge's key steps cannot be used: {error}")
        return self._rules.credit(
            rollout=rollout,
            estimator=self.name,
            curve=curve,
            cost_usd=found.cost_usd,
            settings={"prompt_sha256": found.prompt_sha256},
        )

    def _failed(self, rollout: str, turns: int, found: Judgement, error: str) -> Credit:
        return failed_credit(
            rollout,
            estimator=self.name,
            turns=turns,
            error=error,
            again=found.again,
            cost_usd=found.cost_usd,
        )

    async def close(self) -> None:
        """Close the judge."""
        await self._judge.close()
