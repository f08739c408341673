"""A run that cannot succeed ends after a few rollouts, and is gone on with once the cause is mended."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from orchard_core import (
    Attribution,
    HarnessError,
    ModelEndpoint,
    ModelRejected,
    Outcome,
    RunFutile,
    Sandbox,
    Task,
)
from orchard_core.rollout.retry import RetryPolicy
from orchard_core.rollout.store.run import open_run
from orchard_core.testing import FakeModel, FakeReply, FakeTaskSet

from .harnesses import Acting, solve
from .starting import RETRY, Runs, collected

REFUSED = FakeReply(error=ModelRejected("wrong key", status=401, hint="check the variable that holds it"))


def breaking(words: Callable[[Task], str]) -> Callable[[Task, Sandbox, ModelEndpoint], Awaitable[None]]:
    async def act(task: Task, sandbox: Sandbox, model: ModelEndpoint) -> None:
        raise HarnessError(words(task))

    return act


async def test_a_wrong_key_is_tried_once_a_task_and_ends_the_run_after_five(
    runs: Runs, tmp_path: Path
) -> None:
    with pytest.raises(RunFutile, match=r"refused 5 rollouts in a row alike.*15 more.*wrong key") as raised:
        await collected(runs(FakeTaskSet.of(20), model=FakeModel([REFUSED]), concurrency=1))
    assert "check the variable" in raised.value.hint
    state = open_run(tmp_path / "run").state()
    assert len(state.finished) == 5
    assert {entry.tries for entry in state.finished.values()} == {1}
    assert len(state.missing()) == 15


async def test_it_is_gone_on_with_once_the_key_is_right(runs: Runs) -> None:
    with pytest.raises(RunFutile):
        await collected(runs(FakeTaskSet.of(8), model=FakeModel([REFUSED]), concurrency=4))
    rollouts = await collected(runs(FakeTaskSet.of(8), model=FakeModel(), resume=True))
    assert len(rollouts) == 8
    assert {rollout.score for rollout in rollouts} == {1.0}


async def test_a_harness_that_breaks_alike_before_its_first_call_ends_the_run_and_is_resumed(
    runs: Runs,
) -> None:
    broken = Acting(breaking(lambda _task: "no program `agent` in /tmp/x1f9"))
    with pytest.raises(
        RunFutile, match=r"the harness failed in 5 rollouts in a row alike.*no program `agent`"
    ):
        await collected(runs(FakeTaskSet.of(9), harness=broken, concurrency=2))
    policy = RetryPolicy(harness=1)
    rollouts = await collected(runs(FakeTaskSet.of(9), harness=Acting(solve), resume=True, retry=policy))
    assert {rollout.score for rollout in rollouts} == {1.0}
    assert len(rollouts) == 9


async def test_failures_of_different_causes_end_nothing(runs: Runs) -> None:
    causes = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta")
    mixed = Acting(breaking(lambda task: f"broke by {causes[int(task.id.rpartition('-')[2])]}"))
    rollouts = await collected(runs(FakeTaskSet.of(8), harness=mixed))
    assert len(rollouts) == 8
    assert {rollout.outcome for rollout in rollouts} == {Outcome.HARNESS_FAILED}
    assert {rollout.attribution for rollout in rollouts} == {Attribution.HARNESS}


async def test_the_number_is_the_user_s_and_none_never_gives_up(runs: Runs) -> None:
    policy = RetryPolicy(**(RETRY.model_dump() | {"alike": 0}))
    rollouts = await collected(runs(FakeTaskSet.of(7), model=FakeModel([REFUSED]), retry=policy))
    assert len(rollouts) == 7
