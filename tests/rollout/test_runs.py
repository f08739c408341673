"""Many rollouts: durable before they are reported, resumed exactly, retried by class, stopped in order."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path

import pytest

from orchard_core import (
    Attribution,
    ConfigError,
    Done,
    Drop,
    HarnessError,
    HarnessResult,
    ImageRef,
    ModelEndpoint,
    ModelUnavailable,
    More,
    Outcome,
    PoolEntry,
    RunExists,
    RunLocked,
    Sandbox,
    SandboxCreateFailed,
    SandboxSpec,
    SandboxUnsupported,
    StopReason,
    Task,
)
from orchard_core.gateway.server import Gateway
from orchard_core.rollout.retry import RetryPolicy
from orchard_core.rollout.settings import PhaseLimits, RolloutSettings
from orchard_core.rollout.stop import Stop
from orchard_core.rollout.store.run import open_run
from orchard_core.testing import FakeModel, FakeProvider, FakeReply, FakeTaskSet
from orchard_core.types.events import Event, RolloutFinished, RolloutStarted, RunFinished, RunStarted

from .harnesses import Acting, answer, solve
from .starting import Runs, collected


async def test_every_attempt_at_every_task_is_run_once(runs: Runs, tmp_path: Path) -> None:
    rollouts = await collected(runs(attempts=2))
    assert Counter(rollout.task.id for rollout in rollouts) == {"write-0": 2, "write-1": 2, "write-2": 2}
    assert {rollout.score for rollout in rollouts} == {1.0}
    assert len({rollout.seed for rollout in rollouts}) == 6
    run = open_run(tmp_path / "run")
    assert sorted(run.rollouts(), key=lambda r: r.id) == sorted(rollouts, key=lambda r: r.id)
    assert run.missing() == []


async def test_a_rollout_is_on_the_disk_when_it_is_given(runs: Runs, tmp_path: Path) -> None:
    async for rollout in runs():
        assert open_run(tmp_path / "run").rollout(rollout.id) == rollout


async def test_concurrency_is_bounded(runs: Runs) -> None:
    inside, most = 0, 0

    async def counting(task: Task, sandbox: Sandbox, model: ModelEndpoint) -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0.02)
        inside -= 1

    await collected(runs(FakeTaskSet.of(9), harness=Acting(counting), concurrency=3))
    assert most == 3


async def test_a_run_directory_is_not_overwritten(runs: Runs) -> None:
    await collected(runs())
    with pytest.raises(RunExists, match="holds a run already"):
        await collected(runs())


async def test_resuming_a_finished_run_runs_nothing(runs: Runs) -> None:
    await collected(runs())
    assert await collected(runs(resume=True)) == []


async def test_resuming_runs_exactly_what_is_missing(runs: Runs, tmp_path: Path) -> None:
    ran: list[str] = []

    async def noting(task: Task, sandbox: Sandbox, model: ModelEndpoint) -> None:
        ran.append(task.id)
        await solve(task, sandbox, model)

    async with aclosing(runs(FakeTaskSet.of(6), harness=Acting(noting), concurrency=1)) as first:
        async for _ in first:
            if len(ran) >= 3:
                break
    done = {entry.task for entry in open_run(tmp_path / "run").finished()}
    ran.clear()
    await collected(runs(FakeTaskSet.of(6), harness=Acting(noting), resume=True))
    assert sorted(ran) == sorted({f"write-{n}" for n in range(6)} - done)
    assert len(list(open_run(tmp_path / "run").rollouts())) == 6


async def test_more_attempts_can_be_added_to_a_run(runs: Runs, tmp_path: Path) -> None:
    await collected(runs(attempts=1))
    assert len(await collected(runs(attempts=3, resume=True))) == 6
    assert len(list(open_run(tmp_path / "run").rollouts())) == 9


async def test_a_run_is_not_resumed_with_another_configuration(runs: Runs) -> None:
    await collected(runs())
    with pytest.raises(ConfigError, match="tasks"):
        await collected(runs(FakeTaskSet.of(4), resume=True))
    with pytest.raises(ConfigError, match="seed: 0 then, 7 now"):
        await collected(runs(seed=7, resume=True))


async def test_a_second_writer_is_refused(runs: Runs) -> None:
    first = runs()
    await anext(first)
    with pytest.raises(RunLocked, match="is being written by process"):
        await collected(runs(resume=True))
    await collected(first)


async def test_infrastructure_is_tried_again_and_the_tries_are_counted(
    runs: Runs, gateway: Gateway, tmp_path: Path
) -> None:
    provider = FakeProvider(fail=[SandboxCreateFailed("no room"), SandboxCreateFailed("no room")])
    told: list[Event] = []
    rollouts = await collected(runs(FakeTaskSet.of(1), sandbox=provider, observers=[("test", told.append)]))
    assert [(rollout.tries, rollout.score) for rollout in rollouts] == [(3, 1.0)]
    finished = [event.will_retry for event in told if isinstance(event, RolloutFinished)]
    assert finished == [True, True, False]
    await provider.close()


async def test_infrastructure_is_given_up_at_the_cap_and_taken_up_again_by_resume(
    runs: Runs, provider: FakeProvider, tmp_path: Path
) -> None:
    bad = FakeProvider(fail=[SandboxCreateFailed("no room") for _ in range(3)])
    [failed] = await collected(runs(FakeTaskSet.of(1), sandbox=bad))
    assert (failed.tries, failed.outcome) == (3, Outcome.SANDBOX_FAILED)
    [good] = await collected(runs(FakeTaskSet.of(1), resume=True))
    assert (good.tries, good.outcome) == (4, Outcome.COMPLETED)
    assert [rollout.outcome for rollout in open_run(tmp_path / "run").rollouts()] == [Outcome.COMPLETED]
    await bad.close()


async def test_a_task_that_asks_for_what_nobody_gives_ends_no_other(runs: Runs) -> None:
    provider = FakeProvider(fail=[SandboxUnsupported("memory of 1 MiB cannot be had", hint="ask for more")])
    rollouts = await collected(runs(FakeTaskSet.of(3), sandbox=provider))
    invalid = [rollout for rollout in rollouts if rollout.outcome is Outcome.TASK_INVALID]
    assert [(rollout.attribution, rollout.tries) for rollout in invalid] == [(Attribution.TASK, 1)]
    assert invalid[0].error is not None
    assert "ask for more" in invalid[0].error.message
    assert sum(rollout.score == 1.0 for rollout in rollouts) == 2
    await provider.close()


async def test_resume_does_not_try_for_ever(runs: Runs) -> None:
    retry = RetryPolicy(infrastructure=1, total=3, backoff_s=0.01)
    tries = []
    for session in range(4):
        bad = FakeProvider(fail=[SandboxCreateFailed("no room") for _ in range(9)])
        rollouts = await collected(runs(FakeTaskSet.of(1), sandbox=bad, retry=retry, resume=session > 0))
        tries.append([rollout.tries for rollout in rollouts])
        await bad.close()
    assert tries == [[2], [3], [], []]


async def test_what_the_agent_did_is_never_repeated(runs: Runs) -> None:
    async def fatal(task: Task, sandbox: Sandbox, model: ModelEndpoint) -> None:
        await answer(model)
        await sandbox.close()

    [rollout] = await collected(runs(FakeTaskSet.of(1), harness=Acting(fatal)))
    assert (rollout.tries, rollout.attribution) == (1, Attribution.AGENT)
    assert await collected(runs(FakeTaskSet.of(1), harness=Acting(fatal), resume=True)) == []


async def test_a_model_that_cannot_be_had_is_tried_once_more(runs: Runs) -> None:
    dead = FakeModel(otherwise=FakeReply(error=ModelUnavailable("refused")))
    [rollout] = await collected(runs(FakeTaskSet.of(1), model=dead))
    assert (rollout.tries, rollout.outcome) == (2, Outcome.MODEL_FAILED)


async def test_events_follow_the_journal(runs: Runs, tmp_path: Path) -> None:
    seen: list[Event] = []
    known: list[bool] = []

    def watch(event: Event) -> None:
        seen.append(event)
        if isinstance(event, RolloutFinished):
            known.append(event.rollout in {entry.id for entry in open_run(tmp_path / "run").finished()})

    await collected(runs(observers=[("watch", watch)]))
    assert isinstance(seen[0], RunStarted)
    assert (seen[0].planned, seen[0].finished) == (3, 0)
    assert isinstance(seen[-1], RunFinished)
    assert not seen[-1].cancelled
    assert sum(isinstance(event, RolloutStarted) for event in seen) == 3
    assert known == [True, True, True]


async def test_a_stopped_run_cancels_what_runs_and_resume_runs_it(runs: Runs, tmp_path: Path) -> None:
    stop, running = Stop(), asyncio.Event()

    async def endless(task: Task, sandbox: Sandbox, model: ModelEndpoint) -> None:
        running.set()
        await asyncio.sleep(3600)

    async def press() -> None:
        await running.wait()
        stop.request()

    pressing = asyncio.create_task(press())
    told: list[Event] = []
    rollouts = await collected(
        runs(harness=Acting(endless), concurrency=2, stop=stop, observers=[("t", told.append)])
    )
    await pressing
    assert {rollout.outcome for rollout in rollouts} == {Outcome.CANCELLED}
    assert {rollout.attribution for rollout in rollouts} == {Attribution.USER}
    assert isinstance(told[-1], RunFinished)
    assert told[-1].cancelled
    assert len(open_run(tmp_path / "run").missing()) == 3
    assert len(await collected(runs(resume=True))) == 3


async def test_every_cancelled_rollout_is_told_however_long_its_tear_down_takes(runs: Runs) -> None:
    stop, running = Stop(), 0

    async def endless(task: Task, sandbox: Sandbox, model: ModelEndpoint) -> None:
        nonlocal running
        running += 1
        mine = running
        if running == 3:
            stop.request()
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0.1 * mine)

    rollouts = await collected(runs(FakeTaskSet.of(9), harness=Acting(endless), concurrency=3, stop=stop))
    assert [rollout.outcome for rollout in rollouts] == [Outcome.CANCELLED] * 3


async def test_asking_twice_does_not_wait_for_a_slow_tear_down(runs: Runs, tmp_path: Path) -> None:
    stop, cleaning = Stop(), asyncio.Event()

    async def endless(task: Task, sandbox: Sandbox, model: ModelEndpoint) -> None:
        try:
            stop.request()
            await asyncio.sleep(3600)
        finally:
            cleaning.set()
            await asyncio.sleep(3600)

    async def press_again() -> None:
        await cleaning.wait()
        stop.request()

    pressing = asyncio.create_task(press_again())
    settings = RolloutSettings(phases=PhaseLimits(cancel_s=3000, close_s=2))
    async with asyncio.timeout(20):
        await collected(runs(FakeTaskSet.of(1), harness=Acting(endless), stop=stop, settings=settings))
    await pressing
    assert len(open_run(tmp_path / "run").missing()) == 1


async def test_leaving_the_loop_early_cleans_up(runs: Runs, provider: FakeProvider, tmp_path: Path) -> None:
    async with aclosing(runs(FakeTaskSet.of(8), concurrency=4)) as rollouts:
        async for _ in rollouts:
            break
    assert not any([await sandbox.alive() for sandbox in provider.created])
    await collected(runs(FakeTaskSet.of(8), resume=True))
    assert len(list(open_run(tmp_path / "run").rollouts())) == 8


async def test_images_are_checked_for_the_whole_run_before_it_starts(runs: Runs, tmp_path: Path) -> None:
    spec = SandboxSpec(image=ImageRef.parse("oci:python:3.12"))
    named = FakeTaskSet(list(FakeTaskSet.of(3).tasks()), spec=spec)
    with pytest.raises(SandboxUnsupported, match="and 2 further tasks"):
        await collected(runs(named))
    assert not (tmp_path / "run").exists()


class Particular(Acting):
    """A harness whose program no host has."""

    def check_image(self, image: ImageRef) -> None:
        if image.kind == "host":
            raise ConfigError("there is no such program")


async def test_a_harness_is_asked_whether_the_image_can_hold_its_program_before_anything_starts(
    runs: Runs, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="no such program"):
        await collected(runs(harness=Particular(solve)))
    assert not (tmp_path / "run").exists()


async def test_a_group_sampler_decides_how_many(runs: Runs) -> None:
    class UntilThree:
        """Wants three of the first task, one of the second, and none of the third."""

        def next(self, pool: Sequence[PoolEntry]) -> More | Done | Drop:
            if not pool:
                return More(count=1)
            if pool[0].score == 0.0:
                return Drop(reason="too hard")
            return Done(group=()) if len(pool) == 3 else More(count=1)

    async def first_only(task: Task, sandbox: Sandbox, model: ModelEndpoint) -> None:
        await answer(model)
        if task.id == "write-0":
            await solve(task, sandbox, model)

    rollouts = await collected(runs(harness=Acting(first_only), sampler=UntilThree()))
    assert Counter(rollout.task.id for rollout in rollouts) == {"write-0": 3, "write-1": 1, "write-2": 1}


async def test_a_crash_of_the_harness_stops_no_other_rollout(runs: Runs) -> None:
    async def sometimes(task: Task, sandbox: Sandbox, model: ModelEndpoint) -> HarnessResult:
        if task.id == "write-1":
            raise HarnessError("broke")
        await solve(task, sandbox, model)
        return HarnessResult(stop=StopReason.SUBMITTED)

    rollouts = await collected(runs(harness=Acting(sometimes)))
    assert Counter(rollout.outcome for rollout in rollouts) == {
        Outcome.COMPLETED: 2,
        Outcome.HARNESS_FAILED: 1,
    }


async def test_seeds_do_not_depend_on_order_or_concurrency(runs: Runs, tmp_path: Path) -> None:
    one = {r.id: r.seed for r in await collected(runs(out=tmp_path / "a", concurrency=1))}
    two = {r.id: r.seed for r in await collected(runs(out=tmp_path / "b", concurrency=3))}
    other = {r.id: r.seed for r in await collected(runs(out=tmp_path / "c", seed=1))}
    assert one == two
    assert one.keys() == other.keys()
    assert one != other
