"""Measuring a rollout: from its continuations to a credit."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from orchard_core import (
    CreditRefused,
    HarnessCapabilities,
    ModelUnavailable,
    Price,
    SandboxCreateFailed,
    ToolUse,
    ValuePoint,
)
from orchard_core.datasets.credit.branch.branches import read_branches
from orchard_core.datasets.credit.branch.estimator import BranchEstimator
from orchard_core.datasets.credit.branch.rises import surely_rising
from orchard_core.datasets.credit.rules import CreditRules
from orchard_core.datasets.credit.summary import CreditSummary
from orchard_core.rollout.branching.branch import BranchMode
from orchard_core.testing import FakeHarness, FakeModel, FakeProvider, FakeReply

from .making import Bench, bench, three_steps


@asynccontextmanager
async def closing(estimator: BranchEstimator) -> AsyncIterator[BranchEstimator]:
    try:
        yield estimator
    finally:
        await estimator.close()


@pytest.fixture
async def steps(tmp_path: Path) -> AsyncIterator[Bench]:
    async with bench(tmp_path) as made:
        yield made


async def test_the_value_of_a_turn_is_the_mean_reward_of_its_continuations(steps: Bench) -> None:
    rollout = await steps.unresolved()
    estimator = steps.estimator(k=6)
    credit = await estimator.estimate(steps.item(rollout))
    turns = len(rollout.trajectory.calls)
    assert (credit.estimator, credit.error, credit.rollouts) == ("branch", "", 6 * turns)
    assert [point.turn for point in credit.points] == list(range(turns + 1))
    for point in credit.points[:-1]:
        rewards = [branch.reward or 0.0 for branch in steps.ran if branch.turn == point.turn]
        assert point.value == sum(rewards) / 6
        assert (point.samples, point.invalid) == (6, 0)
        assert point.low is not None
        assert point.high is not None
        assert point.low <= point.value <= point.high
    assert (credit.points[-1].value, credit.points[-1].estimated) == (0.0, False)
    assert len(credit.mask) == turns
    assert credit.settings["modes"] == {"restore": 6 * turns}
    await estimator.close()


async def test_both_ways_to_a_state_measure_the_same(steps: Bench) -> None:
    """The same seeds from the same states: the very same rewards."""
    rollout = await steps.unresolved()
    found = []
    for mode in BranchMode:
        own = steps.with_parts()
        own.directory = steps.directory / mode
        async with closing(own.estimator(k=4, state=mode)) as estimator:
            await estimator.estimate(own.item(rollout))
        assert {branch.mode for branch in own.ran} == {mode}
        found.append({(branch.turn, branch.number): branch.reward for branch in own.ran})
    assert found[0] == found[1]


async def test_what_was_measured_is_not_measured_again(steps: Bench) -> None:
    rollout = await steps.unresolved()
    async with closing(steps.estimator(k=4)) as estimator:
        first = await estimator.estimate(steps.item(rollout))
    again = steps.with_parts(provider=FakeProvider(fail=[SandboxCreateFailed("none left")] * 99))
    async with closing(again.estimator(k=4)) as estimator:
        second = await estimator.estimate(again.item(rollout))
    assert again.ran == []
    assert second == first


async def test_a_rollout_that_was_run_again_is_measured_anew(steps: Bench) -> None:
    rollout = await steps.unresolved()
    async with closing(steps.estimator(k=2)) as estimator:
        await estimator.estimate(steps.item(rollout))
        before = len(steps.ran)
        await estimator.estimate(steps.item(rollout.model_copy(update={"tries": 2})))
    assert len(steps.ran) == 2 * before


async def test_a_world_that_changes_by_itself_gives_a_curve_only_up_to_there(tmp_path: Path) -> None:
    async with bench(tmp_path, taskset=three_steps(look="cat /proc/sys/kernel/random/uuid")) as odd:
        rollout = await odd.unresolved(answers=3)
        calls = [str(message.raw) for message in rollout.trajectory.messages.values()]
        assert any("uuid" in call for call in calls)
        async with closing(odd.estimator(k=4)) as estimator:
            credit = await estimator.estimate(odd.item(rollout))
    invalid = [branch for branch in odd.ran if branch.invalid]
    assert invalid
    assert all("differs" in branch.invalid for branch in invalid)
    assert credit.error == ""
    assert credit.settings["invalid"] == CreditSummary.of([credit]).invalid == len(invalid)
    measured = {point.turn for point in credit.points if point.samples}
    assert measured
    assert measured.isdisjoint({branch.turn for branch in invalid})


async def test_without_a_single_valid_turn_there_is_an_error_and_nothing_is_trained_on(steps: Bench) -> None:
    class Other(FakeHarness):
        async def run(self, task, *given):  # type: ignore[no-untyped-def]
            return await super().run(task.model_copy(update={"instruction": "Else."}), *given)

    rollout = await steps.unresolved()
    changed = steps.with_parts(harness=Other())
    async with closing(changed.estimator(k=2)) as estimator:
        credit = await estimator.estimate(changed.item(rollout))
    assert credit.error.startswith("no turn could be measured: ")
    assert "differs" in credit.error
    assert (credit.again, set(credit.mask), credit.points) == (False, {0}, ())
    assert credit.rollouts == len(changed.ran)


async def test_what_failed_for_want_of_a_model_is_measured_at_the_next_start(steps: Bench) -> None:
    rollout = await steps.unresolved()
    gone = FakeModel(otherwise=FakeReply(error=ModelUnavailable("down")))
    lost = steps.with_parts(model=gone)
    async with closing(lost.estimator(k=2, max_rollouts=2)) as estimator:
        credit = await estimator.estimate(lost.item(rollout))
    assert credit.again
    assert "model_failed" in credit.error
    async with closing(steps.estimator(k=2, max_rollouts=2)) as estimator:
        credit = await estimator.estimate(steps.item(rollout))
    assert (credit.error, len(steps.ran)) == ("", 2)


async def test_a_turn_that_is_sure_enough_gets_no_more_continuations(steps: Bench) -> None:
    rollout = await steps.unresolved()
    async with closing(steps.estimator(k=40, max_rollouts=400, width=0.9, batch=2)) as estimator:
        credit = await estimator.estimate(steps.item(rollout))
    assert {point.samples for point in credit.points if point.samples} == {2}


async def test_replayed_answers_cost_nothing_again(steps: Bench) -> None:
    priced = Price(input=1.0, output=1.0)
    count = FakeReply.call("bash", command="true")
    model = FakeModel([count, count, FakeReply(text="over")], price=priced)
    paid = steps.with_parts(model=model)
    rollout = await paid.rollout(0)
    assert rollout.cost_usd
    ending = paid.with_parts(model=FakeModel(["over"], price=priced))
    async with closing(ending.estimator(k=2)) as estimator:
        credit = await estimator.estimate(ending.item(rollout))
    last = [branch for branch in ending.ran if branch.turn == 2]
    for branch in last:
        assert (branch.answers, branch.cost_usd) == (1, priced.cost(branch.usage))
        assert branch.usage.total < rollout.usage.total
    assert credit.cost_usd == pytest.approx(sum(branch.cost_usd or 0.0 for branch in ending.ran))


async def test_whole_rollouts_are_kept_when_asked_for(steps: Bench) -> None:
    rollout = await steps.unresolved()
    async with closing(steps.estimator(k=2, max_rollouts=2, keep=True)) as estimator:
        await estimator.estimate(steps.item(rollout))
    kept = list(read_branches(steps.directory))
    assert len(kept) == 2
    for branch in kept:
        assert branch.record is not None
        assert branch.record.score == branch.reward
        assert branch.record.id == f"{rollout.id}-{branch.turn}-{branch.number}"


async def test_what_it_takes_is_told_before_and_is_not_exceeded(steps: Bench) -> None:
    rollout = await steps.unresolved()
    async with closing(steps.estimator(k=4, max_rollouts=12, grid=2)) as estimator:
        plan = await estimator.plan([steps.item(rollout)] * 3)
        assert (plan.items, plan.rollouts_at_most) == (3, 36)
        assert 0 < plan.rollouts <= 36
        assert plan.calls > 0
        assert plan.cost_usd == 0.0
        await estimator.estimate(steps.item(rollout))
    assert len(steps.ran) <= 12


async def test_what_can_never_be_measured_is_refused_with_the_reason(steps: Bench) -> None:
    class Remembering(FakeHarness):
        capabilities = HarnessCapabilities(tools=ToolUse.NATIVE)

    rollout = await steps.unresolved()
    row = replace(steps.item(rollout), run=None, rollout=None)
    async with closing(steps.estimator()) as estimator:
        with pytest.raises(CreditRefused, match="no rollout of a run"):
            await estimator.plan([row])
    other = steps.with_parts(harness=Remembering())
    async with closing(other.estimator()) as estimator:
        with pytest.raises(CreditRefused, match="cannot be replayed"):
            await estimator.plan([other.item(rollout)])


async def test_a_task_that_is_no_longer_the_same_is_not_measured(steps: Bench) -> None:
    rollout = await steps.unresolved()
    async with closing(steps.estimator()) as estimator:
        edited = rollout.model_copy(update={"task": rollout.task.model_copy(update={"digest": "other"})})
        assert "not what it was" in (await estimator.estimate(steps.item(edited))).error
        gone = rollout.model_copy(update={"task": rollout.task.model_copy(update={"id": "gone"})})
        assert "no task gone" in (await estimator.estimate(steps.item(gone))).error
    assert steps.ran == []


def measured(turn: int, value: float, low: float, high: float) -> ValuePoint:
    return ValuePoint(turn=turn, value=value, low=low, high=high, samples=8)


def test_the_rule_lower_bound_trains_on_rises_that_are_sure_alone() -> None:
    rules = CreditRules(epsilon=0.01)
    points = [
        measured(0, 0.1, 0.0, 0.4), measured(1, 0.3, 0.1, 0.6), measured(2, 1.0, 0.9, 1.0),
        measured(4, 0.0, 0.0, 0.1),
    ]  # fmt: skip
    curve = rules.curve(points, 5)
    credit = rules.credit(rollout="r", estimator="branch", curve=curve)
    assert credit.mask == (1, 1, 0, 0, 0)
    assert surely_rising(credit, rules).mask == (0, 1, 0, 0, 0)
