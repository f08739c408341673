"""The harnesses that say they can be replayed, in real sandboxes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from orchard_core import Rollout, SnapshotMissing, load_harness, load_model, load_taskset
from orchard_core.gateway.server import Gateway
from orchard_core.rollout.attempt import run_rollout
from orchard_core.rollout.branching.branch import Branch, BranchMode
from orchard_core.rollout.branching.brancher import Brancher
from orchard_core.rollout.branching.model import ReplayingModel
from orchard_core.rollout.branching.recorded import main_calls
from orchard_core.rollout.parts import RolloutParts
from orchard_core.testing import FakeModel, FakeReply
from orchard_core.testing.isolation import provider_or_skip


@pytest.fixture
async def workbench(gateway: Gateway) -> AsyncIterator[RolloutParts]:
    provider = await provider_or_skip()
    yield RolloutParts(
        taskset=load_taskset("workbench:1"),
        harness=load_harness("react"),
        model=load_model("noisy-oracle", rate=0.6),
        provider=provider,
        gateway=gateway,
    )
    await provider.close()


async def recorded(parts: RolloutParts) -> Rollout:
    """One whose main conversation has at least three answers."""
    task = next(iter(parts.taskset.tasks()))
    for seed in range(20):
        rollout = await run_rollout(task, parts, seed=seed)
        if len(main_calls(rollout.trajectory)) >= 3:
            return rollout
    raise AssertionError("every rollout is short")


async def branches(parts: RolloutParts, rollout: Rollout, mode: BranchMode | None) -> list[Branch]:
    """One from turn 2, and one from the last."""
    async with Brancher(rollout, parts, ReplayingModel(parts.model), mode=mode) as brancher:
        await brancher.prepare(range(brancher.turns))
        return [await brancher.branch(turn, 0) for turn in (2, brancher.turns - 1)]


@pytest.mark.parametrize("harness", ["react", "miniswe"])
async def test_what_acts_in_this_process_is_restored_and_done_again_alike(
    workbench: RolloutParts, harness: str
) -> None:
    parts = replace(workbench, harness=load_harness(harness))
    rollout = await recorded(parts)
    restored = await branches(parts, rollout, None)
    again = await branches(parts, rollout, BranchMode.RERUN)
    assert {branch.mode for branch in restored} == {BranchMode.RESTORE}
    assert [branch.invalid for branch in [*restored, *again]] == [""] * 4
    assert [branch.reward for branch in restored] == [branch.reward for branch in again]


@pytest.mark.slow
async def test_a_program_that_works_in_the_sandbox_by_itself_is_done_again(workbench: RolloutParts) -> None:
    parts = replace(workbench, harness=load_harness("openhands"))
    done = await branches(parts, await recorded(parts), None)
    assert [(branch.mode, branch.invalid) for branch in done] == [(BranchMode.RERUN, "")] * 2


async def test_a_process_that_a_command_left_behind_is_seen(workbench: RolloutParts) -> None:
    leaving = [
        FakeReply.call("bash", command="sleep 300 > /dev/null 2>&1 &"),
        FakeReply.call("bash", command="echo here"),
        FakeReply.call("submit"),
    ]
    parts = replace(workbench, model=FakeModel(leaving))
    rollout = await recorded(parts)
    async with Brancher(rollout, parts, ReplayingModel(parts.model)) as brancher:
        await brancher.prepare(range(brancher.turns))
        assert [brancher.mode(turn) for turn in range(3)] == [
            BranchMode.RESTORE, BranchMode.RERUN, BranchMode.RERUN,
        ]  # fmt: skip
    forced = Brancher(rollout, parts, ReplayingModel(parts.model), mode=BranchMode.RESTORE)
    async with forced as brancher:
        await brancher.prepare(range(brancher.turns))
        assert (await brancher.branch(1, 0)).invalid == "a process was left running in the sandbox"


async def test_snapshots_are_gone_when_the_rollout_is_measured(workbench: RolloutParts) -> None:
    rollout = await recorded(workbench)
    brancher = Brancher(rollout, workbench, ReplayingModel(workbench.model))
    await brancher.prepare(range(brancher.turns))
    taken = list(brancher.snapshots)
    assert len(taken) == brancher.turns
    await brancher.close()
    spec = workbench.taskset.spec(rollout.task)
    for snapshot in taken:
        with pytest.raises(SnapshotMissing):
            await workbench.provider.create(spec, restore=snapshot)
