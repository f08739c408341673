"""Assigning credit from Python: any model by name, or a judge of one's own."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path

import pytest
from pydantic import JsonValue

from orchard_core import (
    AssignOptions,
    ConfigError,
    CostPlan,
    CreditRules,
    GoldOutcome,
    Judgement,
    TrajectoryView,
    ValuePoint,
    assign_credit,
    open_credits,
)

from .making import make_rollout, steps, write_run


class Halves:
    """Values the end at a half more than the beginning."""

    def __init__(self) -> None:
        self.settings: Mapping[str, JsonValue] = {"judge": "halves"}
        self.seen: list[tuple[TrajectoryView, GoldOutcome]] = []
        self.closed = False

    def cost(self, view: TrajectoryView, outcome: GoldOutcome) -> CostPlan:
        return CostPlan(items=1)

    async def judge(self, view: TrajectoryView, outcome: GoldOutcome) -> Judgement:
        self.seen.append((view, outcome))
        last = len(view.turns) - 1
        return Judgement(steps=(ValuePoint(turn=0, value=0.1), ValuePoint(turn=last, value=0.6)))

    async def close(self) -> None:
        self.closed = True


async def test_a_judge_of_ones_own_is_shown_everything_and_closed(tmp_path: Path) -> None:
    run = await write_run(tmp_path / "r", [make_rollout("t", turns=3), make_rollout("passed", score=1.0)])
    judge = Halves()
    rules = CreditRules(merge="context:1")
    found = [credit async for credit in assign_credit(run, judge=judge, rules=rules, name="own")]
    assert {credit.rollout: credit.mask for credit in found} == {"t": (1, 1, 1), "passed": (1, 1, 1, 1)}
    ((view, outcome),) = judge.seen
    assert (view.rollout, len(view.turns), outcome.score) == ("t", 3, 0.0)
    assert view.turns[2].observations == "(tool) ok 2"
    assert judge.closed
    assert open_credits(run / "credit" / "own").settings["judge"] == "halves"
    assert [credit async for credit in assign_credit(run, judge=judge, rules=rules, name="own")] == []


class Says(Halves):
    """Gives these key steps, whatever it is shown."""

    def __init__(self, *steps: ValuePoint) -> None:
        super().__init__()
        self.steps = steps

    async def judge(self, view: TrajectoryView, outcome: GoldOutcome) -> Judgement:
        return Judgement(steps=self.steps, cost_usd=0.25)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((), "turns [] are no key steps of 0..4"),
        ((ValuePoint(turn=1, value=0.1), ValuePoint(turn=1, value=0.2)), "turns [1, 1] are no key steps"),
        ((ValuePoint(turn=5, value=0.1),), "turns [5] are no key steps"),
        ((ValuePoint(turn=0, value=math.nan),), "the value of turn 0 is no number"),
    ],
)
async def test_what_a_judge_of_ones_own_cannot_mean_is_an_error_and_no_curve(
    tmp_path: Path, given: tuple[ValuePoint, ...], said: str
) -> None:
    run = await write_run(tmp_path / "r", [make_rollout("t")])
    (credit,) = [credit async for credit in assign_credit(run, judge=Says(*given))]
    assert credit.error.startswith(f"the judge's key steps cannot be used: {said}")
    assert (credit.points, credit.mask, credit.cost_usd, credit.again) == ((), (0, 0, 0, 0), 0.25, False)


async def test_a_model_is_named_as_everywhere(tmp_path: Path) -> None:
    run = await write_run(tmp_path / "r", [make_rollout("t")])
    (tmp_path / "judge.jsonl").write_text(json.dumps({"text": steps((0, 0.1), (1, 0.9))}) + "\n")
    script = f"scripted:{tmp_path / 'judge.jsonl'}"
    options = AssignOptions(concurrency=1, max_usd=1.0)
    (credit,) = [credit async for credit in assign_credit(run, judge=script, options=options)]
    assert credit.mask == (1, 0, 0, 0)
    with pytest.raises(ConfigError, match="holds credits of other settings"):
        async for _ in assign_credit(run, judge=script, threshold=0.5):
            pass
