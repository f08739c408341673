"""Other rules on values that were estimated before: another epsilon or merge rule asks and costs nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import JsonValue

from orchard_core.datasets.credit.estimator import CostPlan, Item
from orchard_core.datasets.credit.rules import CreditRules, failed_credit
from orchard_core.datasets.credit.store import Credits, open_credits
from orchard_core.errors import CreditRefused
from orchard_core.types.credit import Credit


class ReusingEstimator:
    """Honours `Estimator`: takes the estimated turns of earlier credits; curve, rises and mask are new."""

    def __init__(self, places: Mapping[Path, Path], rules: CreditRules) -> None:
        """`places` gives the directory of earlier credits for each one to be written.

        Raises CreditRefused when these cannot be told anew, and what `open_credits` raises.
        """
        self._before = {place: open_credits(earlier) for place, earlier in places.items()}
        self._rules = rules
        first = next(iter(self._before.values()))
        for credits_there in self._before.values():
            _check(credits_there, first, rules)
        self._settings = {**first.head.settings, **rules.model_dump(mode="json")}
        self.name = first.estimator

    @property
    def settings(self) -> Mapping[str, JsonValue]:
        """The earlier ones, with the rules of now."""
        return self._settings

    async def plan(self, items: Sequence[Item]) -> CostPlan:
        """Nothing."""
        return CostPlan(items=len(items))

    async def estimate(self, item: Item) -> Credit:
        """The earlier credit under other rules; an error stays one."""
        rollout, turns = item.row.rollout, item.row.turns
        assert item.directory is not None
        before = self._before[item.directory].by_rollout.get(rollout)
        if before is None or before.resolved or (before.points and len(before.mask) != turns):
            why = "it was not estimated there, or has been run again since"
            return self._failed(rollout, turns, why, again=True)
        if before.error:
            return self._failed(rollout, turns, before.error, again=before.again)
        estimated = [point for point in before.points if point.estimated]
        curve = self._rules.curve(estimated, turns, outcome=before.points[-1].value)
        return self._rules.credit(
            rollout=rollout, estimator=self.name, curve=curve, cost_usd=0.0, settings=before.settings
        )

    def _failed(self, rollout: str, turns: int, error: str, *, again: bool) -> Credit:
        return failed_credit(
            rollout, estimator=self.name, turns=turns, error=error, again=again, cost_usd=0.0
        )

    async def close(self) -> None:
        """Nothing is held."""


def _check(there: Credits, first: Credits, rules: CreditRules) -> None:
    if there.head.differences(first.head):
        raise CreditRefused(
            f"{there.root} and {first.root} were made with different settings",
            hint="name the runs one by one",
        )
    if there.settings.get("end") != rules.end.value:
        raise CreditRefused(
            f"{there.root} was made with --end {there.settings.get('end')}, which cannot be told anew",
            hint=f"--end {there.settings.get('end')}",
        )
    if there.settings.get("rise_by", "value") != "value":
        raise CreditRefused(
            f"{there.root} takes rises by {there.settings['rise_by']}, which its curve alone does not tell",
            hint="measure again with another --name: continuations that are there are not run twice",
        )
