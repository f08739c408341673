"""A resumed run grades again what could not be graded, and does not run the agent for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from orchard_core import (
    Attribution,
    Evidence,
    Grading,
    ModelEndpoint,
    Outcome,
    RewardMissing,
    Rollout,
    Sandbox,
    SandboxGone,
    Task,
    VerifierFailed,
)
from orchard_core.evals.report import build_report
from orchard_core.rollout.settings import RolloutSettings
from orchard_core.rollout.store.run import open_run
from orchard_core.testing import FakeReward, FakeTaskSet
from orchard_core.types.events import Event, RolloutFinished, RunStarted

from .harnesses import Acting, solve
from .starting import RETRY, Runs, collected


class Flaky:
    """A judge that raises these, one each time, and then gives 1."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.asked = 0

    async def __call__(self, evidence: Evidence, grading: Grading) -> float:
        self.asked += 1
        if self.errors:
            raise self.errors.pop(0)
        return float(await evidence.blobs.read(evidence.artifacts["/workspace/answer.txt"].sha256) == b"0")


class Counting:
    """The solving agent, counted."""

    def __init__(self) -> None:
        self.ran = 0

    async def __call__(self, task: Task, sandbox: Sandbox, model: ModelEndpoint) -> None:
        self.ran += 1
        await solve(task, sandbox, model)


def judged(judge: Flaky, *, in_place: bool = False) -> FakeTaskSet:
    reward = FakeReward(judge, needs_own_sandbox=in_place)
    return FakeTaskSet(list(FakeTaskSet.of(1).tasks()), rewards={"write-0": reward})


def ends(rollouts: Sequence[Rollout]) -> list[tuple[Outcome, float | None, int]]:
    return [(rollout.outcome, rollout.score, rollout.tries) for rollout in rollouts]


async def test_resume_grades_again_without_running_the_agent(runs: Runs, tmp_path: Path) -> None:
    agent, judge, told = Counting(), Flaky(VerifierFailed("crashed")), list[Event]()
    first = await collected(runs(judged(judge), harness=Acting(agent)))
    assert ends(first) == [(Outcome.VERIFIER_FAILED, None, 1)]
    resumed = runs(judged(judge), harness=Acting(agent), resume=True, observers=[("test", told.append)])
    again = await collected(resumed)
    assert ends(again) == [(Outcome.COMPLETED, 1.0, 1)]
    assert again[0].trajectory == first[0].trajectory
    assert (agent.ran, judge.asked) == (1, 2)
    [started] = [event for event in told if isinstance(event, RunStarted)]
    assert (started.planned, started.finished) == (1, 0)
    assert [event.score for event in told if isinstance(event, RolloutFinished)] == [1.0]
    assert await collected(runs(judged(judge), harness=Acting(agent), resume=True)) == []


async def test_the_newest_record_wins_and_is_counted_once(runs: Runs, tmp_path: Path) -> None:
    judge = Flaky(RewardMissing("no file"))
    await collected(runs(judged(judge)))
    [graded] = await collected(runs(judged(judge), resume=True))
    run = open_run(tmp_path / "run")
    assert list(run.rollouts()) == [graded]
    assert run.rollout(graded.id) == graded
    report = build_report(run)
    assert (report.total.finished, report.total.scored, report.total.passed) == (1, 1, 1)
    assert report.unscored == ()
    assert report.total.spending.calls == report.total.spending.spent.calls == 1


async def test_grading_is_given_up_at_the_cap(runs: Runs) -> None:
    agent, judge = Counting(), Flaky(*[VerifierFailed("crashed") for _ in range(9)])
    retry = RETRY.model_copy(update={"gradings": 3})
    given = []
    for session in range(5):
        resumed = runs(judged(judge), harness=Acting(agent), retry=retry, resume=session > 0)
        given.append(len(await collected(resumed)))
    assert given == [1, 1, 1, 0, 0]
    assert (agent.ran, judge.asked) == (1, 3)


async def test_a_machine_that_failed_the_verifier_is_no_reason_to_run_the_agent_again(runs: Runs) -> None:
    agent, judge = Counting(), Flaky(SandboxGone("evicted"), SandboxGone("evicted"))
    [failed] = await collected(runs(judged(judge), harness=Acting(agent)))
    assert (failed.outcome, failed.attribution) == (Outcome.VERIFIER_FAILED, Attribution.INFRASTRUCTURE)
    [graded] = await collected(runs(judged(judge), harness=Acting(agent), resume=True))
    assert (graded.score, agent.ran) == (1.0, 1)


async def test_what_the_agent_did_to_its_artifacts_is_not_graded_again(runs: Runs) -> None:
    async def flood(task: Task, sandbox: Sandbox, model: ModelEndpoint) -> None:
        await sandbox.write("/workspace/answer.txt", b"x" * 5000)

    settings = RolloutSettings(max_artifact_bytes=1000)
    options = {"harness": Acting(flood), "settings": settings}
    [failed] = await collected(runs(FakeTaskSet.of(1), **options))
    assert (failed.outcome, failed.attribution) == (Outcome.VERIFIER_FAILED, Attribution.AGENT)
    assert await collected(runs(FakeTaskSet.of(1), **options, resume=True)) == []


async def test_what_refuses_to_be_graded_again_is_run_again_or_left_alone(runs: Runs) -> None:
    agent, judge = Counting(), Flaky(SandboxGone("evicted"), VerifierFailed("crashed"))
    seen = []
    for session in range(3):
        resumed = runs(judged(judge, in_place=True), harness=Acting(agent), resume=session > 0)
        seen.append(ends(await collected(resumed)))
    assert seen == [[(Outcome.VERIFIER_FAILED, None, 1)], [(Outcome.VERIFIER_FAILED, None, 2)], []]
    assert agent.ran == 2
