"""A branch has the recorded answers up to a turn, and from its state the model's own."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from pydantic import JsonValue

from orchard_core import (
    Capabilities,
    CreditRefused,
    HarnessCapabilities,
    HarnessResult,
    Limits,
    ModelEndpoint,
    Outcome,
    Sandbox,
    SandboxUnsupported,
    SnapshotMissing,
    Task,
    Tool,
    ToolResult,
    ToolUse,
)
from orchard_core.rollout.attempt import run_rollout
from orchard_core.rollout.branching.branch import BranchMode
from orchard_core.rollout.branching.brancher import branch_seed
from orchard_core.rollout.branching.recorded import Same
from orchard_core.rollout.parts import RolloutParts
from orchard_core.testing import FakeHarness, FakeModel, FakeProvider, FakeReply, FakeTaskSet
from orchard_core.testing.fakes.provider import FAKE_CAPABILITIES

from ..attempts import the_task
from .making import TRAIL, branching, commands_of, recorded, saying

BOTH = pytest.mark.parametrize("mode", list(BranchMode))
RIGHT = ("true", "true", "true", "printf 0 > answer.txt")
UUID = "cat /proc/sys/kernel/random/uuid"
"""Its output is another one each time."""


@BOTH
async def test_the_recorded_answers_come_first_and_then_the_models_own(
    parts: RolloutParts, mode: BranchMode
) -> None:
    rollout = await recorded(parts)
    assert rollout.score == 0.0
    async with branching(rollout, replace(parts, model=saying(RIGHT)), mode=mode) as brancher:
        await brancher.prepare(range(brancher.turns))
        assert brancher.turns == 4
        for turn in range(brancher.turns):
            branch = await brancher.branch(turn, 0)
            assert (branch.reward, branch.invalid, branch.mode) == (1.0, "", mode)
            assert branch.answers == 5 - turn
            assert branch.record is not None
            replayed = branch.record.trajectory.calls[:turn]
            originals = rollout.trajectory.calls[:turn]
            assert [call.response for call in replayed] == [call.response for call in originals]


async def test_in_a_restored_sandbox_nothing_is_done_twice(
    parts: RolloutParts, provider: FakeProvider
) -> None:
    rollout = await recorded(parts)
    async with branching(rollout, replace(parts, model=saying(("x", "y", "cat trail")))) as brancher:
        await brancher.prepare([2])
        branch = await brancher.branch(2, 0)
    assert branch.mode is BranchMode.RESTORE
    assert commands_of(provider) == ["cat trail"]
    assert branch.record is not None
    assert "one\\ntwo" in last_request(branch.record.trajectory.messages)


async def test_done_again_everything_runs_in_a_fresh_sandbox(
    parts: RolloutParts, provider: FakeProvider
) -> None:
    rollout = await recorded(parts)
    model = saying(("x", "y", "cat trail"))
    async with branching(rollout, replace(parts, model=model), mode=BranchMode.RERUN) as brancher:
        branch = await brancher.branch(2, 0)
    assert commands_of(provider) == [TRAIL[0], TRAIL[1], "cat trail"]
    assert branch.record is not None
    assert "one\\ntwo" in last_request(branch.record.trajectory.messages)


async def test_what_was_saved_for_other_turns_is_given_back(
    parts: RolloutParts, provider: FakeProvider
) -> None:
    """Each state takes as much room as the rollout wrote, and a long rollout has many."""
    rollout = await recorded(parts)
    async with branching(rollout, parts) as brancher:
        await brancher.prepare([0, 1])
        first = brancher.snapshots
        await brancher.prepare([2])
        assert (len(first), len(brancher.snapshots)) == (2, 1)
        modes = [brancher.mode(turn) for turn in range(3)]
        assert modes == [BranchMode.RERUN, BranchMode.RERUN, BranchMode.RESTORE]
        for snapshot in first:
            with pytest.raises(SnapshotMissing):
                await provider.create(parts.taskset.spec(rollout.task), restore=snapshot)


async def test_branches_of_one_snapshot_do_not_see_each_other(parts: RolloutParts) -> None:
    rollout = await recorded(parts)
    model = saying(("x", "echo more >> trail; cat trail"))
    async with branching(rollout, replace(parts, model=model)) as brancher:
        await brancher.prepare([1])
        branches = await asyncio.gather(*(brancher.branch(1, number) for number in range(3)))
    for branch in branches:
        assert branch.record is not None
        assert last_request(branch.record.trajectory.messages).count("more") == 1


async def test_ids_and_log_probabilities_of_what_is_replayed_are_those_that_were_recorded(
    parts: RolloutParts,
) -> None:
    replies = [FakeReply.call("bash", command=command) for command in TRAIL]
    told = replace(parts, model=FakeModel([*replies, FakeReply(text="that is all")]))
    rollout = await run_rollout(the_task(told), told)
    async with branching(
        rollout, replace(parts, model=FakeModel(["over"])), mode=BranchMode.RERUN
    ) as brancher:
        branch = await brancher.branch(2, 0)
    assert branch.record is not None
    for mine, theirs in zip(branch.record.trajectory.calls[:2], rollout.trajectory.calls, strict=False):
        assert mine.completion_tokens == theirs.completion_tokens
        assert mine.logprobs == theirs.logprobs
        assert mine.prompt_tokens == theirs.prompt_tokens
    assert branch.record.trajectory.calls[2].completion_tokens is not None


async def test_a_world_that_is_another_one_each_time_makes_branches_invalid(parts: RolloutParts) -> None:
    rollout = await recorded(parts, (UUID, "printf 1 > answer.txt"))
    async with branching(rollout, parts) as brancher:
        await brancher.prepare(range(brancher.turns))
        first, later = await brancher.branch(0, 0), await brancher.branch(1, 0)
    assert first.valid
    assert later.reward is None
    assert "differs" in later.invalid
    assert "in its first 2 messages" in later.invalid


async def test_a_log_does_not_help_over_a_world_that_changed(parts: RolloutParts) -> None:
    """The base pass has seen that the state is not the recorded one; forcing it gives no value either."""
    rollout = await recorded(parts, (UUID, "printf 1 > answer.txt"))
    async with branching(rollout, parts, mode=BranchMode.RESTORE) as brancher:
        await brancher.prepare(range(brancher.turns))
        branch = await brancher.branch(1, 0)
    assert "differs" in branch.invalid


@BOTH
async def test_figures_that_differ_each_time_may_be_overlooked(parts: RolloutParts, mode: BranchMode) -> None:
    """The state of the files is the recorded one; what the model reads of it has other figures."""
    rollout = await recorded(parts, ("date +%s%N; echo kept > file", "printf 1 > answer.txt"))
    right = replace(parts, model=saying(("x", "grep -q kept file && printf 0 > answer.txt")))
    for same, invalid in ((Same.EXACT, 1), (Same.NUMBERS, 0)):
        async with branching(rollout, right, mode=mode, same=same) as brancher:
            await brancher.prepare(range(brancher.turns))
            branch = await brancher.branch(1, 0)
        assert bool(branch.invalid) is bool(invalid)
    assert branch.reward == 1.0


async def test_another_harness_version_that_asks_otherwise_is_noticed(parts: RolloutParts) -> None:
    class Wordier(FakeHarness):
        async def run(
            self, task: Task, sandbox: Sandbox, model: ModelEndpoint, tools: Sequence[Tool], limits: Limits
        ) -> HarnessResult:
            more = task.model_copy(update={"instruction": f"{task.instruction} Please."})
            return await super().run(more, sandbox, model, tools, limits)

    rollout = await recorded(parts)
    async with branching(rollout, replace(parts, harness=Wordier()), mode=BranchMode.RERUN) as brancher:
        branch = await brancher.branch(1, 0)
    assert "in its first 0 messages" in branch.invalid


async def test_each_branch_has_a_seed_of_its_own_and_the_same_one_again(parts: RolloutParts) -> None:
    rollout = await recorded(parts)
    model = FakeModel(["over"])
    async with branching(rollout, replace(parts, model=model), mode=BranchMode.RERUN) as brancher:
        branches = [await brancher.branch(turn, number) for turn in (1, 2) for number in (0, 1)]
    seeds = [branch.seed for branch in branches]
    assert len(set(seeds)) == 4
    assert [context.seed for context in model.contexts] == seeds
    assert branch_seed(0, rollout=rollout.id, turn=1, number=1) == seeds[1]
    assert branch_seed(5, rollout=rollout.id, turn=1, number=1) != seeds[1]


async def test_a_harness_whose_state_is_more_than_its_conversation_is_refused(parts: RolloutParts) -> None:
    class Remembering(FakeHarness):
        capabilities = HarnessCapabilities(tools=ToolUse.NATIVE)

    rollout = await recorded(parts)
    with pytest.raises(CreditRefused, match="more than its conversation"):
        branching(rollout, replace(parts, harness=Remembering()))


async def test_a_provider_without_snapshots_has_everything_done_again(parts: RolloutParts) -> None:
    able = FAKE_CAPABILITIES.model_copy(update={"snapshot": False})
    parts = replace(parts, provider=FakeProvider(capabilities=Capabilities.model_validate(able)))
    rollout = await recorded(parts)
    async with branching(rollout, replace(parts, model=saying(RIGHT))) as brancher:
        await brancher.prepare([1])
        branch = await brancher.branch(1, 0)
    assert (branch.mode, branch.reward) == (BranchMode.RERUN, 1.0)
    async with branching(rollout, parts, mode=BranchMode.RESTORE) as brancher:
        with pytest.raises(SandboxUnsupported, match="takes no snapshots"):
            await brancher.prepare([1])


async def test_a_started_process_is_no_file_so_everything_is_done_again(parts: RolloutParts) -> None:
    class Serving(FakeHarness):
        async def run(
            self, task: Task, sandbox: Sandbox, model: ModelEndpoint, tools: Sequence[Tool], limits: Limits
        ) -> HarnessResult:
            service = await sandbox.start("sleep 60")
            try:
                return await super().run(task, sandbox, model, tools, limits)
            finally:
                await service.kill()

    parts = replace(parts, harness=Serving())
    rollout = await recorded(parts)
    async with branching(rollout, replace(parts, model=saying(RIGHT))) as brancher:
        await brancher.prepare([1])
        branch = await brancher.branch(1, 0)
    assert (branch.mode, branch.reward) == (BranchMode.RERUN, 1.0)
    async with branching(rollout, parts, mode=BranchMode.RESTORE) as brancher:
        await brancher.prepare([1])
        assert (await brancher.branch(1, 0)).invalid == "a process was started"


class Counter:
    """A tool of a task with a state outside the sandbox, and a file inside."""

    name = "count"
    description = "Counts."
    parameters: Mapping[str, JsonValue] = {"type": "object", "properties": {}}

    def __init__(self) -> None:
        self.count = 0

    async def call(self, args: Mapping[str, JsonValue]) -> ToolResult:
        self.count += 1
        return ToolResult.text(str(self.count))


async def test_what_a_tool_keeps_for_itself_is_made_by_doing_everything_again(parts: RolloutParts) -> None:
    class Counting(FakeTaskSet):
        def session(self, task: Task, sandbox: Sandbox):  # type: ignore[no-untyped-def]
            self._tools = [Counter()]
            return super().session(task, sandbox)

    one = FakeTaskSet.of(1)
    tasks = Counting(one.tasks(), rewards={"write-0": one.reward(one.tasks()[0])})
    count = FakeReply.call("count")
    parts = replace(parts, taskset=tasks, model=FakeModel([count, count, FakeReply(text="that is all")]))
    rollout = await run_rollout(the_task(parts), parts)
    async with branching(rollout, replace(parts, model=FakeModel([count]))) as brancher:
        await brancher.prepare(range(3))
        assert [brancher.mode(turn) for turn in range(3)] == [
            BranchMode.RESTORE, BranchMode.RERUN, BranchMode.RERUN,
        ]  # fmt: skip
        branch = await brancher.branch(2, 0)
    assert branch.record is not None
    assert '"content":"3"' in last_request(branch.record.trajectory.messages).replace(": ", ":")


async def test_a_branch_without_a_score_is_invalid(
    parts: RolloutParts,
) -> None:
    rollout = await recorded(parts)
    broken = replace(parts, model=FakeModel([FakeReply(error=SandboxUnsupported("no"))]))
    async with branching(rollout, broken, mode=BranchMode.RERUN) as brancher:
        branch = await brancher.branch(3, 0)
    assert branch.outcome is Outcome.MODEL_FAILED
    assert branch.reward is None
    assert "model_failed" in branch.invalid


async def test_nothing_is_left_when_a_branch_is_cancelled(
    parts: RolloutParts, provider: FakeProvider
) -> None:
    rollout = await recorded(parts)
    async with branching(rollout, replace(parts, model=saying(("x", "sleep 60")))) as brancher:
        await brancher.prepare([1])
        work = asyncio.create_task(brancher.branch(1, 0))
        while not commands_of(provider):
            await asyncio.sleep(0.01)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
    assert not [sandbox for sandbox in provider.created if await sandbox.alive()]


def last_request(messages: Mapping[str, object]) -> str:
    """The newest tool result, as it was sent."""
    raws = [message.raw for message in messages.values() if message.role == "tool"]  # type: ignore[attr-defined]
    return str(raws[-1])
