"""A score, or the reason why there is none: never a 0 that nobody gave."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from orchard_core import (
    Artifact,
    Attribution,
    Evidence,
    Grading,
    Outcome,
    Phase,
    RegradeRefused,
    RewardMissing,
    RewardResult,
    Rollout,
    SandboxCreateFailed,
    SandboxSpec,
    Trajectory,
    VerifierFailed,
    VerifierTimedOut,
    VerifyIn,
)
from orchard_core.gateway.server import Gateway
from orchard_core.rollout.attempt import run_rollout
from orchard_core.rollout.grading import regrade
from orchard_core.rollout.parts import RolloutParts
from orchard_core.rollout.retry import is_regradable
from orchard_core.rollout.settings import PhaseLimits, RolloutSettings
from orchard_core.testing import (
    FakeHarness,
    FakeModel,
    FakeProvider,
    FakeReply,
    FakeReward,
    FakeTaskSet,
    chat,
)

from .making import make_rollout, make_task

Judge = Callable[[Evidence, Grading], Awaitable[float]]
SETTINGS = RolloutSettings(phases=PhaseLimits(cancel_s=0.2, close_s=2, verify_extra_s=5))


@pytest.fixture
def parts(gateway: Gateway, provider: FakeProvider) -> RolloutParts:
    return RolloutParts(
        taskset=FakeTaskSet.of(1),
        harness=FakeHarness(),
        model=FakeModel([FakeReply.call("bash", command="printf 0 > answer.txt; sleep 60 & echo $! > pid")]),
        provider=provider,
        gateway=gateway,
        settings=SETTINGS,
    )


def judged_by(parts: RolloutParts, judge: Judge | FakeReward, **task: object) -> RolloutParts:
    reward = judge if isinstance(judge, FakeReward) else FakeReward(judge)
    first = next(iter(parts.taskset.tasks())).model_copy(update=task)
    return replace(parts, taskset=FakeTaskSet([first], rewards={first.id: reward}))


async def run(parts: RolloutParts) -> Rollout:
    return await run_rollout(next(iter(parts.taskset.tasks())), parts)


@pytest.mark.parametrize(
    "error",
    [
        VerifierFailed("crashed"),
        VerifierTimedOut("too slow", limit_s=7),
        RewardMissing("no file"),
        KeyError("x"),
    ],
)
async def test_a_verifier_that_gives_no_score_is_its_own_outcome(
    parts: RolloutParts, error: Exception
) -> None:
    async def judge(evidence: Evidence, grading: Grading) -> float:
        raise error

    rollout = await run(judged_by(parts, judge))
    assert (rollout.outcome, rollout.attribution) == (Outcome.VERIFIER_FAILED, Attribution.TASK)
    assert rollout.agent_outcome is Outcome.COMPLETED
    assert rollout.score is None
    assert rollout.reward is not None
    assert rollout.error is not None
    assert (rollout.error.kind, rollout.error.phase) == (type(error).__name__, Phase.VERIFY)
    assert rollout.error.limit_s == (7 if isinstance(error, VerifierTimedOut) else None)


async def test_a_score_of_none_or_nan_is_no_score(parts: RolloutParts) -> None:
    class Odd(FakeReward):
        async def score(self, evidence: Evidence, grading: Grading) -> RewardResult:
            return RewardResult(score=await self._odd(), reason="a captcha stood in the way")

        async def _odd(self) -> float | None:
            return None

    class NotANumber(Odd):
        async def _odd(self) -> float | None:
            return float("nan")

    for reward in (Odd(), NotANumber()):
        rollout = await run(judged_by(parts, reward))
        assert (rollout.outcome, rollout.score) == (Outcome.VERIFIER_FAILED, None)
        assert rollout.error is not None
        assert "captcha" in rollout.error.message


async def test_a_verifier_that_hangs_meets_its_own_deadline(parts: RolloutParts) -> None:
    async def judge(evidence: Evidence, grading: Grading) -> float:
        await asyncio.sleep(3600)
        return 1.0

    quick = SETTINGS.model_copy(update={"phases": PhaseLimits(verify_extra_s=0.1, cancel_s=0.2)})
    chosen = replace(judged_by(parts, judge, verifier_timeout_s=0.2), settings=quick)
    rollout = await run(chosen)
    assert (rollout.outcome, rollout.score) == (Outcome.VERIFIER_FAILED, None)
    assert rollout.error is not None
    assert rollout.error.kind == "DeadlineExceeded"
    assert rollout.error.limit_s == pytest.approx(0.3)


async def test_a_failed_verification_can_be_graded_again_without_the_agent(parts: RolloutParts) -> None:
    asked: list[bool] = []

    async def judge(evidence: Evidence, grading: Grading) -> float:
        assert grading.own is None
        asked.append(True)
        if len(asked) == 1:
            raise VerifierFailed("a flaky judge")
        artifact = evidence.artifacts["/workspace/answer.txt"]
        return float(await evidence.blobs.read(artifact.sha256) == b"0")

    chosen = judged_by(parts, judge)
    failed = await run(chosen)
    graded = await regrade(failed, chosen)
    assert failed.score is None
    assert (graded.outcome, graded.attribution, graded.score, graded.error) == (
        Outcome.COMPLETED,
        Attribution.AGENT,
        1.0,
        None,
    )
    assert graded.trajectory == failed.trajectory
    assert isinstance(chosen.model, FakeModel)
    assert len(chosen.model.contexts) == 1


@pytest.mark.parametrize(
    ("kept", "verify_in", "again"),
    [
        ("/workspace", VerifyIn.FRESH, True),
        ("harness:log.json", VerifyIn.FRESH, False),
        ("/workspace", VerifyIn.SAME_SANDBOX, False),
    ],
)
def test_only_what_can_be_graded_again_is_kept_from_being_run_again(
    kept: str, verify_in: VerifyIn, again: bool
) -> None:
    task = make_task(artifacts=("/workspace",), verify_in=verify_in)
    artifact = Artifact(path=kept, kind="file", sha256="0" * 64, size=1)
    failed = make_rollout(outcome=Outcome.VERIFIER_FAILED, score=None, artifacts=(artifact,))
    assert is_regradable(failed.model_copy(update={"task": task})) is again


async def test_a_fresh_sandbox_holds_nothing_of_the_agents_and_is_closed(
    parts: RolloutParts, provider: FakeProvider
) -> None:
    listed: list[str] = []

    async def judge(evidence: Evidence, grading: Grading) -> float:
        async with grading.fresh(SandboxSpec()) as sandbox:
            listed.extend(entry.name for entry in await sandbox.list("/workspace"))
        return 1.0

    assert (await run(judged_by(parts, judge))).score == 1.0
    assert listed == []
    assert len(provider.created) == 2
    assert not any([await sandbox.alive() for sandbox in provider.created])


async def test_infrastructure_that_fails_during_verification_is_tried_again(
    parts: RolloutParts, provider: FakeProvider
) -> None:
    failing = [SandboxCreateFailed("no room")]

    async def judge(evidence: Evidence, grading: Grading) -> float:
        if failing:
            raise failing.pop()
        return 1.0

    rollout = await run(judged_by(parts, judge))
    assert (rollout.outcome, rollout.score) == (Outcome.COMPLETED, 1.0)


async def test_infrastructure_that_goes_on_failing_is_not_the_tasks_doing(parts: RolloutParts) -> None:
    async def judge(evidence: Evidence, grading: Grading) -> float:
        raise SandboxCreateFailed("no room")

    rollout = await run(judged_by(parts, judge))
    assert (rollout.outcome, rollout.attribution) == (Outcome.VERIFIER_FAILED, Attribution.INFRASTRUCTURE)
    assert rollout.score is None


@pytest.mark.parametrize("asks", ["task", "reward"])
async def test_judging_in_the_own_sandbox_kills_what_runs_there_and_is_marked(
    parts: RolloutParts, provider: FakeProvider, asks: str
) -> None:
    lives: list[bool] = []

    async def judge(evidence: Evidence, grading: Grading) -> float:
        assert grading.own is not None
        lives.append((await grading.own.exec('grep -q "^State:.[RS]" /proc/$(cat pid)/status')).ok)
        return float(await grading.own.read_bytes("/workspace/answer.txt") == b"0")

    reward = FakeReward(judge, needs_own_sandbox=asks == "reward")
    where = VerifyIn.SAME_SANDBOX if asks == "task" else VerifyIn.FRESH
    chosen = judged_by(parts, reward, verify_in=where)
    rollout = await run(chosen)
    assert rollout.score == 1.0
    assert rollout.reward is not None
    assert rollout.reward.same_sandbox
    assert lives == [False]
    assert len(provider.created) == 1
    with pytest.raises(RegradeRefused, match="own sandbox"):
        await regrade(rollout, chosen)


async def test_a_task_without_artifacts_cannot_be_graded_again(parts: RolloutParts) -> None:
    chosen = judged_by(parts, FakeReward(1.0), artifacts=())
    rollout = await run(chosen)
    assert rollout.score == 1.0
    with pytest.raises(RegradeRefused, match="declares no artifacts"):
        await regrade(rollout, chosen)


async def test_a_judges_calls_are_recorded_apart_from_the_trajectory(parts: RolloutParts) -> None:
    async def judge(evidence: Evidence, grading: Grading) -> float:
        async with grading.judge("strict") as model:
            answer = await chat(model, [{"role": "user", "content": "Is it right?"}])
        return float(answer["content"] == "yes")

    asked: list[str] = []

    def model(name: str) -> FakeModel:
        asked.append(name)
        return FakeModel(["yes"], name="judge-model")

    rollout = await run(replace(judged_by(parts, judge), judge=model))
    assert rollout.score == 1.0
    assert asked == ["strict"]
    assert len(rollout.trajectory.calls) == 2
    assert rollout.usage == rollout.trajectory.usage
    [kept] = [item for item in rollout.artifacts if item.path.startswith("judge:")]
    recording = Trajectory.model_validate(json.loads(await parts.blobs.read(kept.sha256)))
    assert len(recording.calls) == 1


async def test_evidence_says_how_the_agent_ended(parts: RolloutParts) -> None:
    reward = FakeReward(0.5)
    chosen = judged_by(parts, reward)
    await run(replace(chosen, limits=chosen.limits.model_copy(update={"turns": 1})))
    [evidence] = reward.evidence
    assert evidence.outcome is Outcome.TRUNCATED
    assert evidence.result is not None
    assert len(evidence.trajectory.calls) == 1
