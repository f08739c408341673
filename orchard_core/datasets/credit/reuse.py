"""Other rules on values that were estimated before: another epsilon or merge rule asks and costs nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import JsonValue

from orchard_core.datasets.credit.branch.options import RiseBy
from orchard_core.datasets.credit.branch.rises import surely_rising
from orchard_core.datasets.credit.candidates import stamp_of
from orchard_core.datasets.credit.estimator import CostPlan, Item
from orchard_core.datasets.credit.rules import CreditRules, failed_credit
from orchard_core.datasets.credit.store import Credits, holds_credits, open_credits
from orchard_core.errors import CreditRefused
from orchard_core.types.credit import Credit


class ReusingEstimator:
    """Honours `Estimator`: takes the estimated turns of earlier credits; curve, rises and mask are new."""

    def __init__(
        self, places: Mapping[Path, Path], rules: CreditRules, *, rise_by: RiseBy | None = None
    ) -> None:
        """`places` gives the directory of earlier credits for each one to be written; `rise_by` None: as
        there.

        Raises CreditRefused when these cannot be told anew, and what `open_credits` raises when there are
        none at all.
        """
        self._places = places
        self._before = {
            place: open_credits(earlier) for place, earlier in places.items() if holds_credits(earlier)
        }
        if not self._before:
            open_credits(next(iter(places.values())))
        self._rules = rules
        first = next(iter(self._before.values()))
        for credits_there in self._before.values():
            _check(credits_there, first, rules)
        self._settings = {**first.head.settings, **rules.model_dump(mode="json")}
        self._sure = self._is_sure(first, rise_by)
        self.name = first.estimator

    def _is_sure(self, first: Credits, rise_by: RiseBy | None) -> bool:
        """Whether only sure rises count. Raises CreditRefused when the values have no intervals."""
        there = self._settings.get("rise_by")
        if rise_by is not None and there is None:
            raise CreditRefused(
                f"{first.root} holds values without intervals, so rise_by says nothing there",
                hint="leave --option rise_by away, or reuse measured credits",
            )
        if rise_by is not None:
            self._settings["rise_by"] = rise_by.value
        return self._settings.get("rise_by") == RiseBy.LOWER_BOUND

    @property
    def settings(self) -> Mapping[str, JsonValue]:
        """The earlier ones, with the rules of now."""
        return self._settings

    async def plan(self, items: Sequence[Item]) -> CostPlan:
        """Nothing. Raises CreditRefused where there is nothing to be taken."""
        for item in items:
            if item.directory not in self._before:
                raise CreditRefused(
                    f"there are no credits at {self._places[_place(item)]}", hint="assign some"
                )
        return CostPlan(items=len(items))

    async def estimate(self, item: Item) -> Credit:
        """The earlier credit under other rules; an error stays one."""
        rollout, turns = item.row.rollout, item.row.turns
        before = self._before[_place(item)].by_rollout.get(rollout)
        if before is None or before.resolved or len(before.mask) != turns or _is_stale(before, item):
            why = "it was not estimated there, or has been run again since"
            return self._failed(rollout, turns, why, again=True)
        if before.error:
            return self._failed(rollout, turns, before.error, again=before.again)
        estimated = [point for point in before.points if point.estimated]
        curve = self._rules.curve(estimated, turns, outcome=before.points[-1].value)
        credit = self._rules.credit(
            rollout=rollout, estimator=self.name, curve=curve, cost_usd=0.0, settings=before.settings
        )
        return surely_rising(credit, self._rules) if self._sure else credit

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


def _place(item: Item) -> Path:
    assert item.directory is not None
    return item.directory


def _is_stale(before: Credit, item: Item) -> bool:
    """Whether the rollout was graded or run again since, as far as the earlier credit tells."""
    now = stamp_of(item.row.reward, tries=item.rollout.tries if item.rollout else 0)
    return any(before.settings.get(name, value) != value for name, value in now.items())
