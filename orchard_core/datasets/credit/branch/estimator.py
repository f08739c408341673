"""The estimator `branch`: a value is the mean reward of continuations."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pydantic import JsonValue

from orchard_core.datasets.credit.branch.branches import BranchLog
from orchard_core.datasets.credit.branch.cost import branch_plan
from orchard_core.datasets.credit.branch.measuring import Measuring
from orchard_core.datasets.credit.branch.opening import OpenedRun, OpenParts, RunOpener
from orchard_core.datasets.credit.branch.options import BranchOptions, RiseBy
from orchard_core.datasets.credit.branch.rises import surely_rising
from orchard_core.datasets.credit.estimator import CostPlan, Item
from orchard_core.datasets.credit.rules import CreditRules, failed_credit
from orchard_core.errors import CreditRefused, RecordCorrupt
from orchard_core.rollout.branching.branch import Branch
from orchard_core.rollout.branching.brancher import Brancher
from orchard_core.types.credit import Credit
from orchard_core.types.rollout import Rollout

NAME = "branch"


class BranchEstimator:
    """Honours `Estimator`. Every continuation is durable in `branches.jsonl` before it counts."""

    name = NAME

    def __init__(
        self,
        options: BranchOptions,
        rules: CreditRules,
        *,
        open_parts: OpenParts,
        concurrency: int = 4,
        on_branch: Callable[[Branch], None] = lambda _branch: None,
    ) -> None:
        """`concurrency` bounds the rollouts that run at once, over all trajectories."""
        self._options = options
        self._rules = rules
        self._runs = RunOpener(open_parts)
        self._slots = asyncio.Semaphore(concurrency)
        self.on_branch = on_branch
        """Told of each continuation once it is durable."""
        self._logs: dict[Path, BranchLog] = {}

    @property
    def settings(self) -> Mapping[str, JsonValue]:
        """The options, and the rules of curve and segments."""
        told: dict[str, JsonValue] = self._options.model_dump(mode="json")
        return {**told, **self._rules.model_dump(mode="json")}

    async def plan(self, items: Sequence[Item]) -> CostPlan:
        """What is expected, from what the recorded rollouts took. Raises CreditRefused."""
        total = CostPlan()
        for item in items:
            rollout, root = _recorded(item)
            await self._runs.run(root)
            total += branch_plan(rollout, item.row.turns, self._options)
        return total

    async def estimate(self, item: Item) -> Credit:
        """Measure the rollout. Raises ConfigError, SandboxUnsupported and CreditRefused, which all would
        meet."""
        rollout, root = _recorded(item)
        opened = await self._runs.run(root)
        if reason := _changed(rollout, opened):
            return self._failed(item, reason)
        try:
            brancher = Brancher(
                rollout,
                opened.parts,
                opened.model,
                mode=self._options.state,
                same=self._options.same,
                seed=self._options.seed,
                keep=self._options.keep,
            )
        except (CreditRefused, RecordCorrupt) as error:
            return self._failed(item, error.message)
        if brancher.turns != item.row.turns:
            return self._failed(
                item,
                f"its row has {item.row.turns} answers, and its main conversation {brancher.turns} calls",
            )
        async with brancher:
            measuring = Measuring(
                brancher,
                rollout,
                self._options,
                slots=self._slots,
                log=self._log(item.directory or root / "credit" / NAME),
                on_branch=self.on_branch,
            )
            await measuring.run()
        return self._credit(item, measuring)

    def _credit(self, item: Item, measuring: Measuring) -> Credit:
        branches = measuring.branches
        spent = {"cost_usd": _cost(branches), "rollouts": len(branches), "settings": _counted(branches)}
        points = measuring.points()
        if not points:
            again = any(branch.lost for branch in branches)
            return self._failed(item, _why_none(branches), again=again).model_copy(update=spent)
        curve = self._rules.curve(points, item.row.turns, outcome=measuring.outcome)
        credit = self._rules.credit(rollout=item.row.rollout, estimator=self.name, curve=curve)
        if self._options.rise_by is RiseBy.LOWER_BOUND:
            credit = surely_rising(credit, self._rules)
        return credit.model_copy(update=spent)

    def _failed(self, item: Item, error: str, *, again: bool = False) -> Credit:
        return failed_credit(
            item.row.rollout,
            estimator=self.name,
            turns=item.row.turns,
            error=error,
            again=again,
            cost_usd=0.0,
        )

    def _log(self, directory: Path) -> BranchLog:
        if directory not in self._logs:
            self._logs[directory] = BranchLog(directory)
        return self._logs[directory]

    async def close(self) -> None:
        """Close every run and file."""
        while self._logs:
            self._logs.popitem()[1].close()
        await self._runs.close()


def _recorded(item: Item) -> tuple[Rollout, Path]:
    if item.rollout is None or item.run is None:
        raise CreditRefused(
            f"row {item.row.id} is no rollout of a run, so nothing says how to continue it",
            hint="measure the run it is from, before mixing; or judge the rows: --estimator judge",
        )
    return item.rollout, item.run


def _changed(rollout: Rollout, opened: OpenedRun) -> str:
    task = opened.tasks.get(rollout.task.id)
    if task is None:
        return f"the task set has no task {rollout.task.id} any more"
    if task.digest != rollout.task.digest:
        return f"the task {rollout.task.id} is not what it was when the rollout was recorded"
    return ""


def _counted(branches: Sequence[Branch]) -> dict[str, JsonValue]:
    """What is noted of the continuations as a whole."""
    modes = Counter(branch.mode.value for branch in branches)
    return {"modes": dict(modes), "invalid": sum(not branch.valid for branch in branches)}


def _why_none(branches: Sequence[Branch]) -> str:
    reasons = Counter(branch.invalid for branch in branches if branch.invalid)
    reason, count = reasons.most_common(1)[0]
    return f"no turn could be measured: {count} of {len(branches)} continuations were invalid, as {reason}"


def _cost(branches: Sequence[Branch]) -> float | None:
    costs = [branch.cost_usd for branch in branches if branch.cost_usd is not None]
    return sum(costs) if len(costs) == len(branches) else None
