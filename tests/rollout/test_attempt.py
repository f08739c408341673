"""One rollout: whatever happens in it, the record says what it was and whose doing."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import pytest

from orchard_core import (
    Attribution,
    ConfigError,
    HarnessError,
    HarnessResult,
    ImageRef,
    Limits,
    ModelEndpoint,
    ModelRejected,
    ModelUnavailable,
    Outcome,
    Phase,
    Reward,
    Rollout,
    Sandbox,
    SandboxCreateFailed,
    SandboxGone,
    SandboxSpec,
    SandboxUnsupported,
    StopReason,
    Task,
    TaskInvalid,
    Text,
    ToolResult,
    ToolUse,
)
from orchard_core.gateway.server import Gateway
from orchard_core.rollout.attempt import run_rollout
from orchard_core.rollout.parts import RolloutParts
from orchard_core.rollout.settings import PhaseLimits, RolloutSettings
from orchard_core.testing import (
    ANSWER_PATH,
    FakeHarness,
    FakeModel,
    FakeProvider,
    FakeReply,
    FakeTaskSet,
    FakeTool,
)
from orchard_core.types.events import Event, PhaseStarted

from .harnesses import Acting, Body, answer, write_then_sleep

QUICK = RolloutSettings(phases=PhaseLimits(cancel_s=0.2, close_s=2, probe_s=2))


@pytest.fixture
def parts(gateway: Gateway, provider: FakeProvider) -> RolloutParts:
    """A task set of one task, solved by the first thing the model says."""
    solving = FakeReply.call("bash", command="printf 0 > answer.txt")
    return RolloutParts(
        taskset=FakeTaskSet.of(1),
        harness=FakeHarness(),
        model=FakeModel([solving]),
        provider=provider,
        gateway=gateway,
        settings=QUICK,
    )


def the_task(parts: RolloutParts, **changes: object) -> Task:
    task = next(iter(parts.taskset.tasks()))
    return task.model_copy(update=changes)


async def run(parts: RolloutParts, **changes: object) -> Rollout:
    return await run_rollout(the_task(parts, **changes), parts)


async def run_body(parts: RolloutParts, body: Body, **changes: object) -> Rollout:
    return await run(replace(parts, harness=Acting(body)), **changes)


def summary(rollout: Rollout) -> tuple[Outcome, Attribution]:
    return rollout.outcome, rollout.attribution


async def test_a_solved_task_is_completed_scored_and_recorded(parts: RolloutParts) -> None:
    rollout = await run(parts)
    assert summary(rollout) == (Outcome.COMPLETED, Attribution.AGENT)
    assert rollout.score == 1.0
    assert rollout.error is None
    assert [artifact.path for artifact in rollout.artifacts] == [ANSWER_PATH]
    assert len(rollout.trajectory.calls) == 2
    assert rollout.usage == rollout.trajectory.usage
    assert rollout.cost_usd == 0.0
    phases = [timing.phase for timing in rollout.timings]
    assert phases == [Phase.CREATE, Phase.PREPARE, Phase.AGENT, Phase.COLLECT, Phase.VERIFY]
    assert rollout.provenance.prompt_digest


async def test_phases_are_told_in_order_and_the_record_is_kept_before_the_sandbox_closes(
    parts: RolloutParts, provider: FakeProvider
) -> None:
    told: list[Event] = []
    alive: list[bool] = []

    async def record(_: Rollout) -> None:
        alive.append(await provider.created[0].alive())

    await run_rollout(the_task(parts), parts, emit=told.append, record=record)
    phases = [event.phase for event in told if isinstance(event, PhaseStarted)]
    assert phases == list(Phase)
    assert alive == [True]
    assert not any([await sandbox.alive() for sandbox in provider.created])


async def test_an_agent_that_runs_out_of_time_is_still_verified_and_flagged(parts: RolloutParts) -> None:
    rollout = await run_body(parts, write_then_sleep, agent_timeout_s=1.0)
    assert summary(rollout) == (Outcome.TIMED_OUT, Attribution.AGENT)
    assert rollout.score == 1.0
    assert rollout.error is not None
    assert rollout.error.kind == "DeadlineExceeded"
    assert rollout.error.limit_s == 1.0
    assert rollout.error.elapsed_s is not None
    assert 1.0 <= rollout.error.elapsed_s < 10


async def test_a_run_may_give_less_time_than_the_task_does(parts: RolloutParts) -> None:
    limited = replace(parts, limits=Limits(wall_clock_s=0.5))
    rollout = await run_body(limited, write_then_sleep, agent_timeout_s=60.0)
    assert rollout.error is not None
    assert rollout.error.limit_s == 0.5


async def test_a_harness_that_ignores_its_cancellation_does_not_hold_the_rollout(parts: RolloutParts) -> None:
    async def stubborn(task: Task, sandbox: Sandbox, model: ModelEndpoint) -> None:
        await answer(model)
        for _ in range(12):
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.1)

    rollout = await run_body(parts, stubborn, agent_timeout_s=0.3)
    assert rollout.outcome is Outcome.TIMED_OUT
    assert rollout.score == 0.0


async def test_an_inner_time_out_keeps_its_own_class_and_message(parts: RolloutParts) -> None:
    async def inner(task: Task, sandbox: Sandbox, model: ModelEndpoint) -> None:
        async with asyncio.timeout(0.05):
            await asyncio.sleep(60)

    rollout = await run_body(parts, inner, agent_timeout_s=1800)
    assert summary(rollout) == (Outcome.HARNESS_FAILED, Attribution.HARNESS)
    assert rollout.error is not None
    assert rollout.error.kind == "TimeoutError"
    assert rollout.error.elapsed_s is not None
    assert rollout.error.elapsed_s < 60
    assert "1800" not in rollout.error.message


async def test_a_turn_limit_truncates_and_is_verified(parts: RolloutParts) -> None:
    rollout = await run(replace(parts, limits=Limits(turns=1), harness=FakeHarness()))
    assert summary(rollout) == (Outcome.TRUNCATED, Attribution.AGENT)
    assert rollout.score == 1.0


async def test_a_budget_that_ran_out_is_named_whatever_the_harness_says_of_it(parts: RolloutParts) -> None:
    async def greedy(task: Task, sandbox: Sandbox, model: ModelEndpoint) -> HarnessResult:
        await answer(model)
        with contextlib.suppress(ModelRejected):
            await answer(model)
        return HarnessResult(stop=StopReason.ANSWERED, answer="I could not go on", turns=1)

    rollout = await run_body(replace(parts, limits=Limits(calls=1)), greedy)
    assert summary(rollout) == (Outcome.TRUNCATED, Attribution.AGENT)
    assert rollout.error is not None
    assert rollout.error.kind == "BudgetExceeded"
    assert rollout.score == 0.0


async def test_a_crashing_harness_is_the_harness_doing_and_is_not_scored(parts: RolloutParts) -> None:
    async def crash(task: Task, sandbox: Sandbox, model: ModelEndpoint) -> None:
        raise ZeroDivisionError("half way")

    rollout = await run_body(parts, crash)
    assert summary(rollout) == (Outcome.HARNESS_FAILED, Attribution.HARNESS)
    assert rollout.error is not None
    assert rollout.error.kind == "ZeroDivisionError"
    assert "half way" in rollout.error.message
    assert rollout.reward is None


async def test_a_harness_that_exits_the_program_ends_only_its_own_rollout(parts: RolloutParts) -> None:
    async def leaving(task: Task, sandbox: Sandbox, model: ModelEndpoint) -> None:
        raise SystemExit(3)

    rollout = await run_body(parts, leaving)
    assert summary(rollout) == (Outcome.HARNESS_FAILED, Attribution.HARNESS)
    assert rollout.error is not None
    assert "sys.exit(3)" in rollout.error.message


async def test_errors_in_a_group_are_named_by_what_is_inside(parts: RolloutParts) -> None:
    async def grouped(task: Task, sandbox: Sandbox, model: ModelEndpoint) -> None:
        raise ExceptionGroup("tasks failed", [ValueError("noise"), ModelUnavailable("no server")])

    rollout = await run_body(parts, grouped)
    assert summary(rollout) == (Outcome.MODEL_FAILED, Attribution.MODEL)


async def test_an_error_that_cannot_be_printed_is_recorded_all_the_same(parts: RolloutParts) -> None:
    class Unprintable(Exception):
        def __str__(self) -> str:
            raise ValueError("no")

    async def odd(task: Task, sandbox: Sandbox, model: ModelEndpoint) -> None:
        raise Unprintable

    rollout = await run_body(parts, odd)
    assert rollout.error is not None
    assert rollout.error.kind == "Unprintable"


async def test_a_harness_that_cancels_itself_does_not_pass_for_the_user(parts: RolloutParts) -> None:
    async def suicidal(task: Task, sandbox: Sandbox, model: ModelEndpoint) -> None:
        raise asyncio.CancelledError

    rollout = await run_body(parts, suicidal)
    assert summary(rollout) == (Outcome.HARNESS_FAILED, Attribution.HARNESS)


@pytest.mark.parametrize("wraps", [True, False])
async def test_a_model_that_cannot_be_had_is_the_models_doing(parts: RolloutParts, wraps: bool) -> None:
    async def asking(task: Task, sandbox: Sandbox, model: ModelEndpoint) -> None:
        try:
            await answer(model)
        except Exception as error:
            if wraps:
                raise HarnessError(f"the client said {error}") from error
            raise

    dead = FakeModel([FakeReply(error=ModelUnavailable("connection refused"))])
    rollout = await run_body(replace(parts, model=dead), asking)
    assert summary(rollout) == (Outcome.MODEL_FAILED, Attribution.MODEL)
    assert rollout.error is not None
    assert "connection refused" in rollout.error.message
    assert rollout.reward is None


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


async def test_an_artifact_past_its_cap_is_refused_and_said_so(parts: RolloutParts) -> None:
    settings = QUICK.model_copy(update={"max_artifact_bytes": 1000})

    async def flood(task: Task, sandbox: Sandbox, model: ModelEndpoint) -> None:
        await sandbox.write(ANSWER_PATH, b"x" * 5000)

    rollout = await run_body(replace(parts, settings=settings), flood)
    assert summary(rollout) == (Outcome.VERIFIER_FAILED, Attribution.AGENT)
    assert rollout.score is None
    assert rollout.artifacts == ()


async def test_harness_files_are_kept_as_blobs_and_not_in_the_record(parts: RolloutParts) -> None:
    async def logging(task: Task, sandbox: Sandbox, model: ModelEndpoint) -> HarnessResult:
        return HarnessResult(stop=StopReason.SUBMITTED, artifacts={"events.log": b"it went well"})

    rollout = await run_body(parts, logging)
    assert rollout.result is not None
    assert rollout.result.artifacts == {}
    kept = {artifact.path: artifact.sha256 for artifact in rollout.artifacts}
    assert await parts.blobs.read(kept["harness:events.log"]) == b"it went well"


async def test_a_harness_without_tools_is_refused_a_task_that_brings_some(
    parts: RolloutParts, provider: FakeProvider
) -> None:
    async def never(task: Task, sandbox: Sandbox, model: ModelEndpoint) -> None:
        raise AssertionError("it started")

    async def look(_: object) -> ToolResult:
        return ToolResult(content=(Text(text="nothing"),))

    with_tools = FakeTaskSet(list(parts.taskset.tasks()), tools=[FakeTool()])
    for use in (ToolUse.NONE, ToolUse.MCP, ToolUse.CLI):
        chosen = replace(parts, taskset=with_tools, harness=Acting(never, tools=use))
        with pytest.raises(ConfigError, match="tools"):
            await run(chosen)
    assert not any([await sandbox.alive() for sandbox in provider.created])
    assert with_tools.open_sessions == 0


async def test_an_image_the_provider_lacks_is_refused_before_anything_starts(
    parts: RolloutParts, provider: FakeProvider
) -> None:
    spec = SandboxSpec(image=ImageRef.parse("oci:python:3.12"))
    named = FakeTaskSet(list(parts.taskset.tasks()), spec=spec)
    with pytest.raises(SandboxUnsupported, match=r"oci:python:3\.12"):
        await run(replace(parts, taskset=named))
    assert provider.created == []


async def test_falling_back_to_the_host_needs_a_flag_and_is_recorded(parts: RolloutParts) -> None:
    spec = SandboxSpec(image=ImageRef.parse("oci:python:3.12"))
    named = FakeTaskSet(list(parts.taskset.tasks()), spec=spec)
    settings = QUICK.model_copy(update={"allow_host_fallback": True})
    rollout = await run(replace(parts, taskset=named, settings=settings))
    assert rollout.outcome is Outcome.COMPLETED
    assert rollout.provenance.image_fallback
    assert rollout.provenance.image == "host"


async def test_cancelling_a_rollout_cleans_up_and_leaves_a_record(
    parts: RolloutParts, provider: FakeProvider
) -> None:
    started = asyncio.Event()

    async def endless(task: Task, sandbox: Sandbox, model: ModelEndpoint) -> None:
        await answer(model)
        started.set()
        await asyncio.sleep(3600)

    taskset = parts.taskset
    assert isinstance(taskset, FakeTaskSet)
    records: list[Rollout] = []
    running = asyncio.create_task(
        run_rollout(the_task(parts), replace(parts, harness=Acting(endless)), on_cancelled=records.append)
    )
    await started.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert [summary(record) for record in records] == [(Outcome.CANCELLED, Attribution.USER)]
    assert len(records[0].trajectory.calls) == 1
    assert taskset.open_sessions == 0
    assert not any([await sandbox.alive() for sandbox in provider.created])


async def test_messages_with_lone_surrogates_can_be_stored(parts: RolloutParts) -> None:
    async def odd(task: Task, sandbox: Sandbox, model: ModelEndpoint) -> None:
        raise HarnessError("odd byte \udc80 in a path")

    rollout = await run_body(parts, odd)
    assert Rollout.model_validate_json(rollout.model_dump_json()) == rollout


async def test_services_end_before_artifacts_are_taken(parts: RolloutParts) -> None:
    class Auditing(FakeTaskSet):
        @contextlib.asynccontextmanager
        async def _session(self, task: Task, sandbox: Sandbox) -> AsyncIterator[Sequence[FakeTool]]:
            yield ()
            await sandbox.write(ANSWER_PATH, b"audit")

    rollout = await run(replace(parts, taskset=Auditing(list(parts.taskset.tasks()))))
    assert await parts.blobs.read(rollout.artifacts[0].sha256) == b"audit"
