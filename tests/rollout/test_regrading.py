"""Grading a run again: durable, without an agent or a model, and the old records stay."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from orchard_core import Evidence, Grading, RunLocked, RunNotFound, Task, VerifierFailed
from orchard_core.rollout.regrading import Regraded, regrade_run
from orchard_core.rollout.retry import RetryPolicy
from orchard_core.rollout.store.run import open_run
from orchard_core.rollout.store.writer import RunWriter
from orchard_core.testing import FakeProvider, FakeReward, FakeTaskSet

from .regrade_driver import COUNT
from .starting import Runs, collected

DRIVER = Path(__file__).with_name("regrade_driver.py")


class Judge:
    """Gives what it is told to give."""

    def __init__(self, score: float | Exception) -> None:
        self.score = score

    async def __call__(self, evidence: Evidence, grading: Grading) -> float:
        if isinstance(self.score, Exception):
            raise self.score
        return self.score


class Asking:
    """A judge that asks a model."""

    async def __call__(self, evidence: Evidence, grading: Grading) -> float:
        async with grading.judge("any"):
            return 1.0


def judged(judge: Any, *, in_place: bool = False, count: int = 1) -> FakeTaskSet:
    tasks = list(FakeTaskSet.of(count).tasks())
    reward = FakeReward(judge, needs_own_sandbox=in_place)
    return FakeTaskSet(tasks, rewards={task.id: reward for task in tasks})


async def graded(items: AsyncGenerator[Regraded, None]) -> list[Regraded]:
    return [item async for item in items]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "run"


async def test_what_has_no_score_gets_one_and_the_old_record_stays(
    runs: Runs, provider: FakeProvider, root: Path
) -> None:
    await collected(runs(judged(Judge(VerifierFailed("crashed")))))
    [result] = await graded(regrade_run(root, taskset=judged(Judge(1.0)), provider=provider))
    assert (result.before, result.after, result.refused) == (None, 1.0, "")
    run = open_run(root)
    old, new = run.history(result.rollout)
    assert (old.score, new.score, new.tries) == (None, 1.0, old.tries)
    assert run.load(old).error is not None
    assert run.rollout(result.rollout).score == 1.0
    assert run.damaged() == []
    assert await graded(regrade_run(root, taskset=judged(Judge(1.0)), provider=provider)) == []


async def test_all_grades_what_has_a_score_too(runs: Runs, provider: FakeProvider, root: Path) -> None:
    await collected(runs(judged(Judge(1.0), count=3)))
    results = await graded(
        regrade_run(root, taskset=judged(Judge(0.5), count=3), provider=provider, every=True)
    )
    assert [(item.before, item.after) for item in results] == [(1.0, 0.5)] * 3
    assert [rollout.score for rollout in open_run(root).rollouts()] == [0.5] * 3


async def test_a_judgement_that_fails_never_replaces_a_score(
    runs: Runs, provider: FakeProvider, root: Path
) -> None:
    await collected(runs(judged(Judge(1.0))))
    broken = judged(Judge(VerifierFailed("crashed")))
    [result] = await graded(regrade_run(root, taskset=broken, provider=provider, every=True))
    assert (result.before, result.after) == (1.0, 1.0)
    assert "crashed" in result.refused
    assert [rollout.score for rollout in open_run(root).rollouts()] == [1.0]


async def test_what_was_judged_in_the_agents_sandbox_is_refused_with_the_reason(
    runs: Runs, provider: FakeProvider, root: Path
) -> None:
    there = judged(Judge(VerifierFailed("crashed")), in_place=True)
    await collected(runs(there, retry=RetryPolicy(infrastructure=0)))
    [result] = await graded(regrade_run(root, taskset=there, provider=provider))
    assert "in the agent's own sandbox, which is gone" in result.refused


async def test_a_task_without_artifacts_is_refused_with_the_reason(
    runs: Runs, provider: FakeProvider, root: Path
) -> None:
    bare = [Task(id="bare", taskset="fake", instruction="Go.")]
    await collected(runs(FakeTaskSet(bare, rewards={"bare": FakeReward(Judge(1.0))})))
    again = FakeTaskSet(bare, rewards={"bare": FakeReward(Judge(1.0))})
    [result] = await graded(regrade_run(root, taskset=again, provider=provider, every=True))
    assert "declares no artifacts" in result.refused
    assert result.after == 1.0


async def test_a_reward_that_asks_a_model_is_refused(runs: Runs, provider: FakeProvider, root: Path) -> None:
    await collected(runs(judged(Judge(1.0))))
    [result] = await graded(regrade_run(root, taskset=judged(Asking()), provider=provider, every=True))
    assert "makes no model call" in result.refused
    assert result.after == 1.0


async def test_leaving_early_keeps_what_was_given(runs: Runs, provider: FakeProvider, root: Path) -> None:
    await collected(runs(judged(Judge(VerifierFailed("crashed")), count=4)))
    taskset = judged(Judge(1.0), count=4)
    running = regrade_run(root, taskset=taskset, provider=provider, concurrency=1)
    first = await anext(running)
    await running.aclose()
    assert open_run(root).rollout(first.rollout).score == 1.0
    rest = await graded(regrade_run(root, taskset=taskset, provider=provider))
    assert first.rollout not in {item.rollout for item in rest}
    assert [rollout.score for rollout in open_run(root).rollouts()] == [1.0] * 4


async def test_a_run_that_is_being_written_or_is_none_is_refused(
    runs: Runs, provider: FakeProvider, root: Path
) -> None:
    with pytest.raises(RunNotFound):
        await graded(regrade_run(root, taskset=judged(Judge(1.0)), provider=provider))
    await collected(runs(judged(Judge(1.0))))
    async with await RunWriter.open(root, open_run(root).config, resume=True):
        with pytest.raises(RunLocked):
            await graded(regrade_run(root, taskset=judged(Judge(1.0)), provider=provider))


async def test_killing_the_grader_loses_nothing_that_was_reported(runs: Runs, root: Path) -> None:
    await collected(runs(judged(Judge(VerifierFailed("crashed")), count=COUNT)))
    reported: list[str] = []
    lives = 0
    while await _life(root, reported):
        lives += 1
        run = open_run(root)
        assert {run.rollout(name).score for name in reported} == {1.0}
    assert lives >= 1
    assert len(reported) == len(set(reported))
    assert [rollout.score for rollout in open_run(root).rollouts()] == [1.0] * COUNT
    assert open_run(root).damaged() == []


async def _life(root: Path, reported: list[str]) -> bool:
    """One grader, killed at its second report. False when there was nothing left to kill it for."""
    grader = await asyncio.create_subprocess_exec(
        sys.executable, str(DRIVER), str(root), stdout=asyncio.subprocess.PIPE
    )
    assert grader.stdout is not None
    seen = 0
    async for line in grader.stdout:
        reported.append(line.decode().strip())
        seen += 1
        if seen == 2 and grader.returncode is None:
            grader.send_signal(signal.SIGKILL)
    code = await grader.wait()
    assert code in {0, -signal.SIGKILL}
    return code != 0
