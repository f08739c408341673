"""Sandboxes and set-ups that fail: machine, task and agent are told apart."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from orchard_core import (
    Attribution,
    ModelEndpoint,
    Outcome,
    Phase,
    Reward,
    Sandbox,
    SandboxCreateFailed,
    SandboxGone,
    SandboxSpec,
    Task,
    TaskInvalid,
)
from orchard_core.gateway.server import Gateway
from orchard_core.rollout.parts import RolloutParts
from orchard_core.rollout.settings import PhaseLimits
from orchard_core.testing import (
    FakeProvider,
    FakeTaskSet,
)

from .attempts import QUICK, run, run_body, summary
from .harnesses import answer


async def test_a_sandbox_that_is_not_created_is_infrastructure(gateway: Gateway, parts: RolloutParts) -> None:
    provider = FakeProvider(fail=[SandboxCreateFailed("no room")])
    rollout = await run(replace(parts, provider=provider))
    assert summary(rollout) == (Outcome.SANDBOX_FAILED, Attribution.INFRASTRUCTURE)
    assert rollout.error is not None
    assert rollout.error.phase is Phase.CREATE
    assert rollout.agent_outcome is None


async def test_an_agent_that_ends_its_own_sandbox_is_told_from_a_machine_that_fails(
    parts: RolloutParts, provider: FakeProvider
) -> None:
    async def fatal(task: Task, sandbox: Sandbox, model: ModelEndpoint) -> None:
        await answer(model)
        await sandbox.close()

    rollout = await run_body(parts, fatal)
    assert summary(rollout) == (Outcome.SANDBOX_FAILED, Attribution.AGENT)
    assert rollout.error is not None
    assert rollout.error.kind == "SandboxGone"
    assert "by what the agent did" in rollout.error.message
    assert rollout.score is None


async def test_a_sandbox_that_dies_while_the_provider_is_ill_is_infrastructure(
    parts: RolloutParts, provider: FakeProvider
) -> None:
    async def killed(task: Task, sandbox: Sandbox, model: ModelEndpoint) -> None:
        await answer(model)
        await sandbox.close()
        provider._fail.append(SandboxCreateFailed("the host is down"))
        await sandbox.exec("true")

    rollout = await run_body(parts, killed)
    assert summary(rollout) == (Outcome.SANDBOX_FAILED, Attribution.INFRASTRUCTURE)


async def test_a_sandbox_that_dies_before_the_model_acted_is_infrastructure(parts: RolloutParts) -> None:
    async def early(task: Task, sandbox: Sandbox, model: ModelEndpoint) -> None:
        await sandbox.close()
        await sandbox.exec("true")

    rollout = await run_body(parts, early)
    assert summary(rollout) == (Outcome.SANDBOX_FAILED, Attribution.INFRASTRUCTURE)


async def test_a_sandbox_that_outlived_its_ttl_is_infrastructure(parts: RolloutParts) -> None:
    async def slow(task: Task, sandbox: Sandbox, model: ModelEndpoint) -> None:
        await answer(model)
        while await sandbox.alive():
            await asyncio.sleep(0.05)

    short = FakeTaskSet(list(parts.taskset.tasks()), spec=SandboxSpec(ttl_s=0.5))
    rollout = await run_body(replace(parts, taskset=short), slow)
    assert summary(rollout) == (Outcome.SANDBOX_FAILED, Attribution.INFRASTRUCTURE)
    assert rollout.error is not None
    assert "TTL" in rollout.error.message


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (TaskInvalid("setup.sh exited 1"), (Outcome.TASK_INVALID, Attribution.TASK)),
        (KeyError("x"), (Outcome.TASK_INVALID, Attribution.TASK)),
        (SandboxGone("evicted"), (Outcome.SANDBOX_FAILED, Attribution.INFRASTRUCTURE)),
        (OSError(28, "No space left on device"), (Outcome.SANDBOX_FAILED, Attribution.INFRASTRUCTURE)),
    ],
)
async def test_a_failing_set_up_says_whether_task_or_machine(
    parts: RolloutParts, error: Exception, expected: tuple[Outcome, Attribution]
) -> None:
    async def prepare(task: Task, sandbox: Sandbox) -> None:
        raise error

    broken = FakeTaskSet(list(parts.taskset.tasks()), prepare=prepare)
    rollout = await run(replace(parts, taskset=broken))
    assert summary(rollout) == expected
    assert rollout.trajectory.calls == ()
    assert broken.open_sessions == 0


async def test_a_task_whose_spec_or_reward_cannot_be_made_is_a_record_and_not_a_crash(
    parts: RolloutParts, provider: FakeProvider
) -> None:
    class NoSpec(FakeTaskSet):
        def spec(self, task: Task) -> SandboxSpec:
            raise TaskInvalid("task.toml: memory is not a number")

    class NoReward(FakeTaskSet):
        def reward(self, task: Task) -> Reward:
            raise FileNotFoundError("test.sh")

    rollout = await run(replace(parts, taskset=NoSpec(list(parts.taskset.tasks()))))
    assert summary(rollout) == (Outcome.TASK_INVALID, Attribution.TASK)
    assert provider.created == []
    rollout = await run(replace(parts, taskset=NoReward(list(parts.taskset.tasks()))))
    assert summary(rollout) == (Outcome.VERIFIER_FAILED, Attribution.TASK)
    assert rollout.score is None


async def test_a_set_up_that_hangs_meets_its_own_deadline(parts: RolloutParts) -> None:
    async def prepare(task: Task, sandbox: Sandbox) -> None:
        await asyncio.sleep(3600)

    slow = FakeTaskSet(list(parts.taskset.tasks()), prepare=prepare)
    settings = QUICK.model_copy(update={"phases": PhaseLimits(prepare_s=0.2)})
    rollout = await run(replace(parts, taskset=slow, settings=settings))
    assert summary(rollout) == (Outcome.TASK_INVALID, Attribution.TASK)
    assert rollout.error is not None
    assert (rollout.error.kind, rollout.error.phase) == ("DeadlineExceeded", Phase.PREPARE)
