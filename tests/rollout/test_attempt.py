"""One rollout: whatever happens in it, the record says what it was and whose doing."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import pytest

from orchard_core import (
    Attribution,
    Capabilities,
    ConfigError,
    HarnessError,
    HarnessResult,
    ImageRef,
    ModelEndpoint,
    Outcome,
    Phase,
    Rollout,
    Sandbox,
    SandboxSpec,
    SandboxUnsupported,
    StopReason,
    Task,
    Text,
    ToolResult,
    ToolSpec,
    ToolUse,
)
from orchard_core.rollout.attempt import run_rollout
from orchard_core.rollout.fitting import fit_spec
from orchard_core.rollout.opening import check_images
from orchard_core.rollout.parts import RolloutParts
from orchard_core.testing import (
    ANSWER_PATH,
    FakeProvider,
    FakeTaskSet,
    FakeTool,
)
from orchard_core.types.events import Event, PhaseStarted

from .attempts import QUICK, run, run_body, summary, the_task
from .harnesses import Acting, answer


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
    chosen = replace(parts, taskset=with_tools, harness=Acting(never, tools=ToolUse.NONE))
    with pytest.raises(ConfigError, match="tools"):
        await run(chosen)
    assert not any([await sandbox.alive() for sandbox in provider.created])
    assert with_tools.open_sessions == 0


async def test_tools_that_a_task_set_can_name_are_refused_before_anything_starts(
    parts: RolloutParts, provider: FakeProvider
) -> None:
    class Known(FakeTaskSet):
        def tools_of(self, task: Task) -> Sequence[ToolSpec] | None:
            return [ToolSpec(name="lookup", description="", parameters={})]

    async def never(task: Task, sandbox: Sandbox, model: ModelEndpoint) -> None:
        raise AssertionError("it started")

    known = Known(list(parts.taskset.tasks()), tools=[FakeTool()])
    chosen = replace(parts, taskset=known, harness=Acting(never, tools=ToolUse.NONE))
    with pytest.raises(ConfigError, match="lookup"):
        await run(chosen)
    with pytest.raises(ConfigError, match="lookup"):
        await check_images(known.tasks(), chosen)
    assert provider.created == []


async def test_an_image_the_provider_lacks_is_refused_before_anything_starts(
    parts: RolloutParts, provider: FakeProvider
) -> None:
    spec = SandboxSpec(image=ImageRef.parse("oci:python:3.12"))
    named = FakeTaskSet(list(parts.taskset.tasks()), spec=spec)
    with pytest.raises(SandboxUnsupported, match=r"oci:python:3\.12") as told:
        await run(replace(parts, taskset=named))
    assert "--allow-host-fallback" in told.value.hint
    assert provider.created == []


@pytest.mark.parametrize(
    ("image", "helps"), [("host", "host_image="), ("oci:python:3.12", "another --sandbox")]
)
def test_a_refused_image_is_told_with_what_helps_there(parts: RolloutParts, image: str, helps: str) -> None:
    """Falling back to the host's files helps nobody whose provider has none."""
    task, builds = the_task(parts), Capabilities(images=frozenset({"build"}))
    with pytest.raises(SandboxUnsupported) as told:
        fit_spec(task, SandboxSpec(image=ImageRef.parse(image)), builds, QUICK)
    assert helps in told.value.hint
    assert "fallback" not in told.value.hint


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
