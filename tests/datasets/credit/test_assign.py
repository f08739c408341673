"""Assigning credit to runs, matrices and rows: unresolved ones only, nothing twice, everything counted."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from pydantic import JsonValue

from orchard_core import Credit, DatasetRow, Outcome, RunFutile, SampleLabel, open_credits
from orchard_core.datasets.credit.assign import FUTILE, Assignment, AssignOptions
from orchard_core.datasets.credit.candidates import row_candidates
from orchard_core.datasets.credit.estimator import CostPlan, Estimator, Item
from orchard_core.datasets.credit.head import CreditHead
from orchard_core.datasets.credit.rules import CreditRules, failed_credit
from orchard_core.datasets.credit.summary import CreditSummary
from orchard_core.datasets.credit.survey import Survey, survey
from orchard_core.datasets.credit.target import find_targets
from orchard_core.datasets.reading import find_source
from orchard_core.datasets.store.writer import DatasetWriter
from orchard_core.errors import ConfigError, CreditRefused, DatasetLocked
from orchard_core.types.credit import ValuePoint

from .making import make_rollout, make_row, write_run

THREE = [
    make_rollout("passed", score=1.0),
    make_rollout("half", score=0.5),
    make_rollout("failed", score=0.0),
    make_rollout("lost", score=None, outcome=Outcome.SANDBOX_FAILED),
    make_rollout("unscored", score=None, outcome=Outcome.VERIFIER_FAILED),
    make_rollout("silent", score=0.0, turns=0),
]


class Rising:
    """Values every state a little higher; a dollar each. `fails` gives errors by rollout."""

    name = "rising"

    def __init__(self, fails: Mapping[str, Credit] | None = None, pause: asyncio.Event | None = None) -> None:
        self.settings: Mapping[str, JsonValue] = {"kind": "test"}
        self.fails = dict(fails or {})
        self.asked: list[str] = []
        self.cancelled: list[str] = []
        self._pause = pause

    async def plan(self, items: Sequence[Item]) -> CostPlan:
        return CostPlan(items=len(items), calls=len(items), cost_usd=1.0 * len(items))

    async def estimate(self, item: Item) -> Credit:
        self.asked.append(item.row.rollout)
        try:
            if self._pause is not None and len(self.asked) > 1:
                await self._pause.wait()
        except asyncio.CancelledError:
            self.cancelled.append(item.row.rollout)
            raise
        if item.row.rollout in self.fails:
            return self.fails[item.row.rollout]
        curve = [ValuePoint(turn=turn, value=0.1 * turn) for turn in range(item.row.turns + 1)]
        return CreditRules().credit(rollout=item.row.rollout, estimator="rising", curve=curve, cost_usd=1.0)

    async def close(self) -> None:
        """Nothing is held."""


def work_on(path: Path, estimator: Estimator, **options: object) -> Assignment:
    return Assignment(
        targets=find_targets(path, name="c"),
        estimator=estimator,
        head=CreditHead(estimator=estimator.name, settings=estimator.settings),
        threshold=1.0,
        options=AssignOptions(**options),  # type: ignore[arg-type]
    )


async def assign(path: Path, estimator: Estimator, **options: object) -> dict[str, Credit]:
    """What is in the directory afterwards."""
    async for _ in work_on(path, estimator, **options).credits():
        pass
    return dict(open_credits(path / "credit" / "c").by_rollout)


async def look(path: Path, estimator: Estimator, *, retry_failed: bool = False) -> Survey:
    head = CreditHead(estimator=estimator.name, settings=estimator.settings)
    targets = find_targets(path, name="c")
    return await survey(targets, estimator, head, threshold=1.0, retry_failed=retry_failed)


async def test_only_what_did_not_pass_is_estimated_and_what_has_no_score_is_left_out(tmp_path: Path) -> None:
    run = await write_run(tmp_path / "r", THREE)
    estimator = Rising()
    found = await assign(run, estimator)
    assert sorted(found) == ["failed", "half", "passed"]
    assert sorted(estimator.asked) == ["failed", "half"]
    assert found["passed"].resolved
    assert found["passed"].mask == (1, 1, 1, 1)
    assert found["half"].mask == (1, 1, 1, 1)
    assert found["half"].settings == {"kind": "test", "score": 0.5, "tries": 1}


async def test_a_survey_counts_everything_before_anything_starts(tmp_path: Path) -> None:
    run = await write_run(tmp_path / "r", THREE)
    estimator = Rising()
    found = await look(run, estimator)
    assert (found.resolved, found.unresolved, found.done, found.todo) == (1, 2, 0, 3)
    assert dict(found.left_out) == {
        "no score (sandbox_failed)": 1,
        "no score (verifier_failed)": 1,
        "no answer of a model": 1,
    }
    assert (found.plan.items, found.total_usd) == (2, 2.0)
    assert estimator.asked == []
    assert not (run / "credit").exists()


async def test_the_same_command_goes_on_and_judges_nothing_twice(tmp_path: Path) -> None:
    run = await write_run(tmp_path / "r", THREE)
    first = await assign(run, Rising())
    again = Rising()
    assert await assign(run, again) == first
    assert again.asked == []
    found = await look(run, again)
    assert (found.done, found.todo, found.spent_usd, found.plan.items) == (3, 0, 2.0, 0)


async def test_what_was_graded_or_run_again_is_credited_again(tmp_path: Path) -> None:
    run = await write_run(tmp_path / "r", THREE)
    await assign(run, Rising())
    await write_run(run, [make_rollout("half", score=1.0), make_rollout("failed", score=0.0, tries=2)])
    again = Rising()
    found = await assign(run, again)
    assert again.asked == ["failed"]
    assert found["half"].resolved
    assert found["failed"].cost_usd == 2.0  # both times were paid for


async def test_an_error_stays_unless_it_is_asked_for_and_a_lost_judge_is_always_asked_again(
    tmp_path: Path,
) -> None:
    run = await write_run(tmp_path / "r", THREE)
    no = failed_credit("half", estimator="rising", turns=4, error="no answer", cost_usd=1.0)
    gone = failed_credit("failed", estimator="rising", turns=4, error="gone", again=True, cost_usd=0.0)
    found = await assign(run, Rising({"half": no, "failed": gone}))
    assert (found["half"].error, found["failed"].error) == ("no answer", "gone")
    second, third = Rising(), Rising()
    assert (await look(run, second)).todo == 1
    assert (await assign(run, second))["failed"].error == ""
    assert second.asked == ["failed"]
    assert (await look(run, third, retry_failed=True)).todo == 1
    assert (await assign(run, third, retry_failed=True))["half"].error == ""
    assert third.asked == ["half"]


async def test_other_settings_are_refused_before_anything_is_spent(tmp_path: Path) -> None:
    run = await write_run(tmp_path / "r", THREE)
    await assign(run, Rising())
    other = Rising()
    other.settings = {"kind": "other"}
    for attempt in (look(run, other), assign(run, other)):
        with pytest.raises(ConfigError, match="kind is 'test' there, 'other' is asked for"):
            await attempt
    assert other.asked == []


async def test_stopping_keeps_what_is_done_and_cancels_the_rest(tmp_path: Path) -> None:
    run = await write_run(tmp_path / "r", [make_rollout(f"r{n}") for n in range(6)])
    estimator = Rising(pause=asyncio.Event())
    credits_of = work_on(run, estimator, concurrency=3).credits()
    await anext(credits_of)
    while len(estimator.asked) < 3:
        await asyncio.sleep(0.01)
    await credits_of.aclose()
    assert len(open_credits(run / "credit" / "c")) == 1
    assert len(estimator.cancelled) == 2
    rest = Rising()
    assert len(await assign(run, rest)) == 6
    assert len(rest.asked) == 5


async def test_no_further_rollout_is_begun_once_the_bound_is_spent(tmp_path: Path) -> None:
    run = await write_run(tmp_path / "r", [make_rollout(f"r{n}") for n in range(6)])
    work = work_on(run, Rising(), concurrency=1, max_usd=2.0)
    done = [credit.rollout async for credit in work.credits()]
    assert (len(done), work.capped, work.spent_usd) == (2, True, 2.0)


async def test_a_judge_that_cannot_be_had_at_all_ends_it_early(tmp_path: Path) -> None:
    rollouts = [make_rollout(f"r{n}") for n in range(FUTILE + 20)]
    run = await write_run(tmp_path / "r", rollouts)
    gone = {
        item.id: failed_credit(item.id, estimator="rising", turns=4, error="bad key", again=True)
        for item in rollouts
    }
    estimator = Rising(gone)
    with pytest.raises(RunFutile, match="8 rollouts in a row could not be estimated: bad key"):
        await assign(run, estimator, concurrency=1)
    assert len(estimator.asked) == FUTILE


async def test_two_at_once_are_refused(tmp_path: Path) -> None:
    run = await write_run(tmp_path / "r", [make_rollout(f"r{n}") for n in range(3)])
    first = work_on(run, Rising(pause=asyncio.Event()), concurrency=1).credits()
    await anext(first)
    with pytest.raises(DatasetLocked, match="is being written"):
        await assign(run, Rising())
    await first.aclose()
    assert len(await assign(run, Rising())) == 3


async def test_a_damaged_record_is_passed_over_and_counted(tmp_path: Path) -> None:
    run = await write_run(tmp_path / "r", [make_rollout("a"), make_rollout("b")])
    (shard,) = (run / "shards").iterdir()
    whole = bytearray(shard.read_bytes())
    whole[100] ^= 1
    shard.write_bytes(whole)
    work = work_on(run, Rising())
    assert [credit.rollout async for credit in work.credits()] == ["b"]
    ((reason, count),) = work.passed_over.items()
    assert (count, "checksum" in reason) == (1, True)
    assert [*(await look(run, Rising())).left_out.values()] == [1]


async def test_a_run_that_is_still_being_written_gets_what_is_there_and_then_the_rest(tmp_path: Path) -> None:
    run = await write_run(tmp_path / "r", [make_rollout("a")])
    assert [*(await assign(run, Rising()))] == ["a"]
    await write_run(run, [make_rollout("b")])
    assert [*(await assign(run, Rising()))] == ["a", "b"]


def write_dataset(out: Path, rows: Sequence[DatasetRow]) -> Path:
    with DatasetWriter(out) as writer:
        for row in rows:
            writer.write(row)
        writer.finish()
    return out


async def test_rows_without_a_run_are_credited_into_a_directory_of_their_own(tmp_path: Path) -> None:
    rollouts = [make_rollout("a", score=0.0), make_rollout("b", score=1.0), make_rollout("c", score=None)]
    fork = make_row(rollouts[0]).model_copy(update={"id": "a#1", "label": SampleLabel.FORK})
    data = write_dataset(tmp_path / "d", [*map(make_row, rollouts), fork])
    with pytest.raises(ConfigError, match="is a dataset, which nothing is written into") as caught:
        find_targets(data, name="c")
    assert "--out" in caught.value.hint
    estimator = Rising()
    work = Assignment(
        targets=find_targets(data, name="c", out=tmp_path / "credits"),
        estimator=estimator,
        head=CreditHead(estimator="rising", settings=estimator.settings),
        threshold=1.0,
    )
    async for _ in work.credits():
        pass
    found = open_credits(tmp_path / "credits").by_rollout
    assert {name: credit.resolved for name, credit in found.items()} == {"a": False, "b": True}
    assert estimator.asked == ["a"]


async def test_two_rollouts_of_one_id_in_a_dataset_are_refused(tmp_path: Path) -> None:
    other = make_row(make_rollout("a")).model_copy(update={"id": "other"})
    data = write_dataset(tmp_path / "d", [make_row(make_rollout("a")), make_row(make_rollout("b")), other])
    with pytest.raises(CreditRefused, match="two rollouts a") as caught:
        list(row_candidates(find_source(data), tmp_path))
    assert "before mixing" in caught.value.hint


def test_a_summary_counts_every_kind() -> None:
    rules = CreditRules()

    def rising(name: str, *values: float) -> Credit:
        curve = [ValuePoint(turn=turn, value=value) for turn, value in enumerate(values)]
        return rules.credit(rollout=name, estimator="x", curve=curve, cost_usd=0.5)

    found = CreditSummary.of(
        [
            rising("a", 0.0, 0.5, 0.5, 0.9, 0.95),
            rising("b", 0.5, 0.4),
            failed_credit("c", estimator="x", turns=3, error="no", again=True, cost_usd=0.25),
            Credit(rollout="d", estimator="x", resolved=True, mask=(1, 1), cost_usd=0.0),
        ]
    )
    assert (found.resolved, found.annotated, found.without_rise, found.failed, found.again) == (1, 2, 1, 1, 1)
    assert (found.segments, found.median_length) == (2, 1.5)
    assert (found.turns, found.kept, found.share) == (5, 3, 0.6)
    assert (found.errors, found.cost_usd) == ({"no": 1}, 1.25)


def test_one_unknown_cost_makes_the_sum_unknown() -> None:
    told = [
        Credit(rollout=name, estimator="x", resolved=True, cost_usd=cost)
        for name, cost in (("a", 1.0), ("b", None))
    ]
    assert CreditSummary.of(told).cost_usd is None


def test_a_summary_counts_continuations_that_were_invalid_where_they_were_spent() -> None:
    measured = failed_credit("one", estimator="branch", turns=4, error="no turn could be measured")
    spent = measured.model_copy(update={"rollouts": 8, "settings": {"invalid": 5}})
    reused = spent.model_copy(update={"rollouts": 0})
    found = CreditSummary.of([spent, reused, measured])
    assert (found.rollouts, found.invalid) == (8, 5)


def test_none_at_once_is_refused_before_it_could_wait_for_ever() -> None:
    with pytest.raises(ConfigError, match="concurrency is 0"):
        AssignOptions(concurrency=0)


async def test_a_rollout_with_messages_that_are_none_is_passed_over_and_the_others_are_credited(
    tmp_path: Path,
) -> None:
    odd = make_rollout("odd")
    messages = {
        key: message.model_copy(update={"raw": "["}) for key, message in odd.trajectory.messages.items()
    }
    trajectory = odd.trajectory.model_copy(update={"messages": messages})
    run = await write_run(
        tmp_path / "r", [odd.model_copy(update={"trajectory": trajectory}), make_rollout("fine")]
    )
    (reason,) = (await look(run, Rising())).left_out
    assert reason.startswith("damaged: the messages of rollout odd cannot be read")
    assert [*await assign(run, Rising())] == ["fine"]
