"""Other rules on values that are there: nobody is asked, and the result is what asking would have given."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchard_core import Credit, open_credits
from orchard_core.cli.exits import Exit
from orchard_core.datasets.credit.branch.options import RiseBy
from orchard_core.datasets.credit.curve import CurveEnd, Interpolation
from orchard_core.datasets.credit.estimator import Estimator
from orchard_core.datasets.credit.head import CreditHead
from orchard_core.datasets.credit.reuse import ReusingEstimator
from orchard_core.datasets.credit.rules import CreditRules, failed_credit, resolved_credit
from orchard_core.datasets.credit.writer import CreditWriter
from orchard_core.errors import CreditRefused, DatasetNotFound
from orchard_core.types.credit import ValuePoint
from tests.cli.conftest import command

from .making import make_item, make_rollout, steps, write_run

STEPS = [
    ValuePoint(turn=0, value=0.2, reason="a"),
    ValuePoint(turn=2, value=0.5),
    ValuePoint(turn=3, value=0.9),
]


def credited(rules: CreditRules) -> Credit:
    return rules.credit(rollout="one", estimator="judge", curve=rules.curve(STEPS, 4), cost_usd=0.5)


def written(root: Path, credit: Credit, rules: CreditRules, **settings: str) -> Path:
    told = {"judge": "m", **rules.model_dump(mode="json"), **settings}
    with CreditWriter.open(root, CreditHead(estimator="judge", settings=told)) as writer:
        writer.add(credit)
    return root


async def reused(root: Path, rules: CreditRules, *, rise_by: RiseBy | None = None) -> Credit:
    estimator = ReusingEstimator({root / "new": root}, rules, rise_by=rise_by)
    assert isinstance(estimator, Estimator)
    return await estimator.estimate(make_item(make_rollout(), root / "new"))


@pytest.mark.parametrize(
    "before", [CreditRules(), CreditRules(interpolation=Interpolation.STEP, epsilon=0.5)]
)
@pytest.mark.parametrize(
    "after", [CreditRules(), CreditRules(merge="context:1"), CreditRules(interpolation=Interpolation.STEP)]
)
async def test_it_is_as_if_it_had_been_estimated_under_these_rules(
    tmp_path: Path, before: CreditRules, after: CreditRules
) -> None:
    found = await reused(written(tmp_path, credited(before), before), after)
    asked = credited(after)
    assert (found.points, found.segments, found.mask) == (asked.points, asked.segments, asked.mask)
    assert found.cost_usd == 0.0


async def test_errors_stay_errors_and_what_is_not_there_is_tried_again(tmp_path: Path) -> None:
    rules = CreditRules()
    no = failed_credit("one", estimator="judge", turns=4, error="no answer")
    assert (await reused(written(tmp_path / "a", no, rules), rules)).error == "no answer"
    other = resolved_credit("other", estimator="judge", turns=4)
    missing = await reused(written(tmp_path / "b", other, rules), rules)
    assert (missing.again, missing.mask) == (True, (0, 0, 0, 0))
    shorter = CreditRules().credit(rollout="one", estimator="judge", curve=STEPS[:1])
    assert (await reused(written(tmp_path / "c", shorter, rules), rules)).again


@pytest.mark.parametrize(
    ("rules", "rise_by", "said"),
    [
        (CreditRules(end=CurveEnd.ESTIMATE), None, "--end outcome"),
        (CreditRules(), RiseBy.LOWER_BOUND, "values without intervals"),
    ],
)
async def test_what_a_curve_does_not_tell_is_refused(
    tmp_path: Path, rules: CreditRules, rise_by: RiseBy | None, said: str
) -> None:
    root = written(tmp_path, credited(CreditRules()), CreditRules())
    with pytest.raises(CreditRefused, match=said):
        ReusingEstimator({tmp_path / "new": root}, rules, rise_by=rise_by)


@pytest.mark.parametrize("there", [*RiseBy])
@pytest.mark.parametrize("asked", [None, *RiseBy])
async def test_measured_values_tell_which_rises_are_sure(
    tmp_path: Path, there: RiseBy, asked: RiseBy | None
) -> None:
    """0.2 to 0.5 to 0.9, of which the second is sure."""
    ends = ((0, 0.2, 0.1, 0.4), (2, 0.5, 0.3, 0.6), (3, 0.9, 0.85, 0.95))
    points = [
        ValuePoint(turn=turn, value=value, low=low, high=high, samples=16) for turn, value, low, high in ends
    ]
    rules = CreditRules()
    curve = rules.curve(points, 4)
    measured = rules.credit(rollout="one", estimator="branch", curve=curve, cost_usd=0.0)
    found = await reused(written(tmp_path, measured, rules, rise_by=there.value), rules, rise_by=asked)
    sure = (asked or there) is RiseBy.LOWER_BOUND
    assert found.mask == ((0, 0, 1, 0) if sure else (1, 1, 1, 0))
    assert found.points == measured.points


async def test_a_rollout_that_was_run_or_graded_again_is_not_given_its_earlier_values(tmp_path: Path) -> None:
    rules = CreditRules()
    stamped = credited(rules).model_copy(update={"settings": {"score": 0.0, "tries": 1}})
    root = written(tmp_path, stamped, rules)
    estimator = ReusingEstimator({root / "new": root}, rules)
    for now, stale in (({}, False), ({"tries": 2}, True), ({"score": 0.5}, True)):
        credit = await estimator.estimate(make_item(make_rollout(**now), root / "new"))
        assert credit.again is stale
        assert bool(credit.error) is stale


async def test_a_cell_without_earlier_values_is_refused_and_the_others_are_not(tmp_path: Path) -> None:
    rules = CreditRules()
    root = written(tmp_path / "a", credited(rules), rules)
    places = {tmp_path / "new-a": root, tmp_path / "new-b": tmp_path / "b"}
    estimator = ReusingEstimator(places, rules)
    assert (await estimator.plan([make_item(make_rollout(), tmp_path / "new-a")])).items == 1
    with pytest.raises(CreditRefused, match=f"no credits at {tmp_path / 'b'}"):
        await estimator.plan([make_item(make_rollout(), tmp_path / "new-b")])
    with pytest.raises(DatasetNotFound):
        ReusingEstimator({tmp_path / "new-b": tmp_path / "b"}, rules)


async def test_the_command_takes_what_is_there_and_asks_nobody(tmp_path: Path) -> None:
    orchard = command(tmp_path)
    await write_run(tmp_path / "r", [make_rollout("t"), make_rollout("passed", score=1.0)])
    (tmp_path / "judge.jsonl").write_text(json.dumps({"text": steps((0, 0.1), (4, 0.4))}) + "\n")
    scripted = ("data", "credit", "r", "--judge", "scripted:judge.jsonl", "--interpolation", "step")
    assert orchard(*scripted).returncode == Exit.OK
    (tmp_path / "judge.jsonl").unlink()
    again = ("data", "credit", "r", "--reuse", "judge")
    for more, said in (
        ((), "another --name"),
        (("--estimator", "branch"), "another --name"),
        (("--name", "wide", "--judge", "scripted:judge.jsonl"), "--reuse asks nobody"),
        (("--name", "wide", "--option", "k=4"), "k cannot be chosen"),
        (("--name", "wide", "--option", "rise_by=luck"), "value or lower-bound"),
        (("--name", "wide", "--option", "rise_by=lower-bound"), "values without intervals"),
        (("--name", "wide", "--end", "estimate"), "made with --end outcome"),
    ):
        refused = orchard(*again, *more)
        assert refused.returncode == Exit.USAGE, (more, refused.stderr)
        assert said in refused.stderr
        assert not (tmp_path / "r" / "credit" / "wide").exists()
    done = orchard(*again, "--name", "wide", "--merge", "context:2")
    assert done.returncode == Exit.OK, done.stderr
    assert "nobody is asked" in done.stderr
    found = open_credits(tmp_path / "r" / "credit" / "wide")
    assert found.settings["merge"] == "context:2"
    assert found.settings["judge"] == "scripted:judge.jsonl"
    assert found.by_rollout["passed"].resolved
