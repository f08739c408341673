"""Nothing that was paid for is lost from the journal, and nothing is counted twice."""

from __future__ import annotations

from pathlib import Path

from orchard_core import Attribution, Outcome, Trajectory, Usage
from orchard_core.cli.summary import RunSummary
from orchard_core.rollout.store.entry import Retried, Spent, Started
from orchard_core.rollout.store.run import open_run
from orchard_core.rollout.store.state import RunState
from orchard_core.rollout.store.summary import summary
from orchard_core.rollout.store.writer import RunWriter
from orchard_core.types.model import Retry

from ..making import make_config, make_planned, make_rollout

ONE = Spent(calls=1, usage=Usage(input=10, output=3), cost_usd=0.0)


async def test_tries_that_were_repeated_stopped_or_replaced_are_counted(tmp_path: Path) -> None:
    async with await RunWriter.open(tmp_path, make_config()) as writer:
        await writer.plan([make_planned("a"), make_planned("b")])
        await writer.retried(make_rollout("a", tries=1, error="gone"))
        await writer.finish(make_rollout("a", tries=2))
        await writer.finish(make_rollout("a", tries=3))
        await writer.cancelled(make_planned("b").id, make_rollout("b"))
        await writer.cancelled(make_planned("b").id)
        assert writer.state.spent() == ONE + ONE + ONE + ONE
    state = open_run(tmp_path).state()
    assert state.spent() == ONE + ONE + ONE + ONE
    assert state.lost == {make_planned("a").id: ONE + ONE, make_planned("b").id: ONE}
    assert RunSummary.of(tmp_path).tokens == 4 * 13


async def test_the_time_of_all_tries_counts_and_the_span_begins_with_the_first(tmp_path: Path) -> None:
    name = make_planned("a").id
    state = RunState()
    state.apply(make_planned("a"))
    state.apply(Started(id=name, tries=1, at=100.0))
    state.apply(
        Retried(
            id=name, tries=1, outcome=Outcome.MODEL_FAILED, attribution=Attribution.MODEL, error="x", at=107.0
        )
    )
    state.apply(Started(id=name, tries=2, at=110.0))
    last = summary(make_rollout("a", tries=2)).model_copy(update={"started_at": 110.0, "finished_at": 113.0})
    state.apply(last)
    assert state.seconds_of(last) == 7.0 + 3.0
    assert state.span_s([last]) == 13.0


async def test_retries_of_rollouts_and_of_calls_are_told_apart(tmp_path: Path) -> None:
    rollout = make_rollout("a", tries=3)
    call = rollout.trajectory.calls[0].model_copy(
        update={
            "retries": (Retry(reason="overloaded", waited_s=1.0), Retry(reason="overloaded", waited_s=2.0))
        }
    )
    resent = rollout.model_copy(update={"trajectory": Trajectory(calls=(call,))})
    async with await RunWriter.open(tmp_path, make_config()) as writer:
        await writer.plan([make_planned("a")])
        await writer.finish(resent)
    told = RunSummary.of(tmp_path)
    assert (told.rollout_retries, told.call_retries) == (2, 2)
    assert "retries    2 of whole rollouts, 2 of model calls" in told.lines()


async def test_work_that_is_graded_again_is_not_paid_twice(tmp_path: Path) -> None:
    async with await RunWriter.open(tmp_path, make_config()) as writer:
        await writer.plan([make_planned("a")])
        await writer.finish(make_rollout("a", score=None))
        await writer.finish(make_rollout("a", score=1.0))
    state = open_run(tmp_path).state()
    assert state.spent() == ONE
    assert state.gradings == {make_planned("a").id: 2}


async def test_a_new_try_starts_the_count_of_gradings_again(tmp_path: Path) -> None:
    async with await RunWriter.open(tmp_path, make_config()) as writer:
        await writer.plan([make_planned("a")])
        for tries in (1, 1, 2):
            await writer.finish(make_rollout("a", tries=tries, score=None))
    assert open_run(tmp_path).state().gradings == {make_planned("a").id: 1}


async def test_an_unknown_cost_makes_the_whole_unknown(tmp_path: Path) -> None:
    async with await RunWriter.open(tmp_path, make_config()) as writer:
        await writer.plan([make_planned("a")])
        await writer.retried(make_rollout("a", error="gone").model_copy(update={"cost_usd": None}))
        await writer.finish(make_rollout("a", tries=2))
    assert open_run(tmp_path).state().spent().cost_usd is None
    assert RunSummary.of(tmp_path).cost_usd is None
