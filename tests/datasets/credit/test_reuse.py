"""Other rules on values that are there: nobody is asked, and the result is what asking would have given."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchard_core import Credit, open_credits
from orchard_core.cli.exits import Exit
from orchard_core.datasets.credit.curve import CurveEnd, Interpolation
from orchard_core.datasets.credit.estimator import Estimator
from orchard_core.datasets.credit.head import CreditHead
from orchard_core.datasets.credit.reuse import ReusingEstimator
from orchard_core.datasets.credit.rules import CreditRules, failed_credit, resolved_credit
from orchard_core.datasets.credit.writer import CreditWriter
from orchard_core.errors import CreditRefused
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


async def reused(root: Path, rules: CreditRules) -> Credit:
    estimator = ReusingEstimator({root / "new": root}, rules)
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
    ("settings", "rules", "said"),
    [
        ({}, CreditRules(end=CurveEnd.ESTIMATE), "--end outcome"),
        ({"rise_by": "lower-bound"}, CreditRules(), "rises by lower-bound"),
    ],
)
async def test_what_a_curve_does_not_tell_is_refused(
    tmp_path: Path, settings: dict[str, str], rules: CreditRules, said: str
) -> None:
    root = written(tmp_path, credited(CreditRules()), CreditRules(), **settings)
    with pytest.raises(CreditRefused, match=said):
        ReusingEstimator({tmp_path / "new": root}, rules)


async def test_the_command_takes_what_is_there_and_asks_nobody(tmp_path: Path) -> None:
    orchard = command(tmp_path)
    await write_run(tmp_path / "r", [make_rollout("t"), make_rollout("passed", score=1.0)])
    (tmp_path / "judge.jsonl").write_text(json.dumps({"text": steps((0, 0.1), (4, 0.4))}) + "\n")
    scripted = ("data", "credit", "r", "--judge", "scripted:judge.jsonl", "--interpolation", "step")
    assert orchard(*scripted).returncode == Exit.OK
    (tmp_path / "judge.jsonl").unlink()
    again = ("data", "credit", "r", "--reuse", "judge")
    refused = orchard(*again)
    assert refused.returncode == Exit.USAGE
    assert "another --name" in refused.stderr
    done = orchard(*again, "--name", "wide", "--merge", "context:2")
    assert done.returncode == Exit.OK, done.stderr
    assert "nobody is asked" in done.stderr
    found = open_credits(tmp_path / "r" / "credit" / "wide")
    assert found.settings["merge"] == "context:2"
    assert found.settings["judge"] == "scripted:judge.jsonl"
    assert found.by_rollout["passed"].resolved
