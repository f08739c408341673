"""Cells of a matrix that an estimator refuses: left out with the reason, and the others are credited."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from orchard_core import CreditRefused, assign_credit, measure_credit, open_credits
from orchard_core.cli.exits import Exit
from orchard_core.datasets.credit.assign import Assignment
from orchard_core.datasets.credit.estimator import CostPlan, Item
from orchard_core.datasets.credit.head import CreditHead
from orchard_core.datasets.credit.rules import CreditRules
from orchard_core.datasets.credit.survey import survey
from orchard_core.datasets.credit.target import find_targets
from orchard_core.rollout.matrix.plan import MatrixPart, MatrixPlan, MatrixShared, cell_directory, write_plan
from orchard_core.rollout.store.files import DiskFiles
from orchard_core.types.credit import Credit, ValuePoint
from tests.cli.conftest import command

from .making import make_rollout, steps, write_run


class Refusing:
    """Values every state alike, and refuses the runs of these directories."""

    name = "refusing"
    settings: dict[str, str] = {}  # noqa: RUF012 - never written

    def __init__(self, *refused: Path) -> None:
        self.refused = refused

    async def plan(self, items: Sequence[Item]) -> CostPlan:
        for item in items:
            if item.run in self.refused:
                raise CreditRefused(f"{item.run} is not for me", hint="ask another")
        return CostPlan(items=len(items))

    async def estimate(self, item: Item) -> Credit:
        curve = [ValuePoint(turn=turn, value=0.5) for turn in range(item.row.turns + 1)]
        return CreditRules().credit(rollout=item.row.rollout, estimator=self.name, curve=curve)

    async def close(self) -> None:
        """Nothing is held."""


async def two_cells(root: Path, *, harness: str = "command:true", model: str = "oracle") -> tuple[Path, Path]:
    """A matrix of react and another harness, each with a rollout that passed and one that did not."""
    plan = MatrixPlan.product(
        harnesses=[MatrixPart(name="react"), MatrixPart(name=harness)],
        models=[MatrixPart(name=model)],
        tasksets=[MatrixPart(name="workbench:1")],
        shared=MatrixShared(),
        created_at=0.0,
    )
    root.mkdir()
    write_plan(DiskFiles(), root, plan)
    react, other = (cell_directory(root, cell.key) for cell in plan.cells)
    for directory, name in ((react, "react"), (other, harness)):
        directory.parent.mkdir(exist_ok=True)
        rollouts = [make_rollout(f"{name}-failed"), make_rollout(f"{name}-passed", score=1.0)]
        parts = {"taskset": "workbench:1", "model": model, "sandbox": "local"}
        await write_run(directory, rollouts, harness=name, **parts)
    return react, other


async def work(root: Path, estimator: Refusing) -> tuple[Assignment, list[str]]:
    head = CreditHead.of(estimator, threshold=1.0, source=root)
    targets = find_targets(root, name="c")
    assignment = Assignment(targets=targets, estimator=estimator, head=head, threshold=1.0)
    return assignment, [credit.rollout async for credit in assignment.credits()]


async def test_the_other_cells_are_credited(tmp_path: Path) -> None:
    react, other = await two_cells(tmp_path / "m")
    for refused, kept, name in ((react, other, "command:true"), (other, react, "react")):
        assignment, done = await work(tmp_path / "m", Refusing(refused))
        assert sorted(done) == [f"{name}-failed", f"{name}-passed"]
        assert assignment.refused == {refused: f"{refused} is not for me"}
        assert not (refused / "credit").exists()
        shutil.rmtree(kept / "credit")


async def test_a_survey_does_not_count_what_is_left_out(tmp_path: Path) -> None:
    _, other = await two_cells(tmp_path / "m")
    estimator = Refusing(other)
    head = CreditHead.of(estimator, threshold=1.0, source="m")
    found = await survey(find_targets(tmp_path / "m", name="c"), estimator, head, threshold=1.0)
    assert (found.resolved, found.unresolved, found.plan.items) == (1, 1, 1)
    assert [*found.refused] == [other]


async def test_it_is_refused_when_nothing_is_left(tmp_path: Path) -> None:
    cells = await two_cells(tmp_path / "m")
    estimator = Refusing(*cells)
    head = CreditHead.of(estimator, threshold=1.0, source="m")
    targets = find_targets(tmp_path / "m", name="c")
    with pytest.raises(CreditRefused, match="not for me"):
        await survey(targets, estimator, head, threshold=1.0)
    with pytest.raises(CreditRefused, match="not for me"):
        await work(tmp_path / "m", estimator)
    assert not any((cell / "credit").exists() for cell in cells)


async def test_a_cell_whose_rollouts_are_all_credited_already_is_not_asked_for(tmp_path: Path) -> None:
    _, other = await two_cells(tmp_path / "m")
    await work(tmp_path / "m", Refusing())
    assignment, done = await work(tmp_path / "m", Refusing(other))
    assert (assignment.refused, done) == ({}, [])


async def test_from_python_the_log_says_what_was_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    react, other = await two_cells(tmp_path / "m")
    with caplog.at_level(logging.WARNING, logger="orchard.datasets"):
        found = {credit.rollout async for credit in measure_credit(tmp_path / "m")}
    assert found == {"react-failed", "react-passed"}
    assert f"{other} was left out: harness command cannot be replayed" in caplog.text
    assert str(react) not in caplog.text


async def test_a_cell_whose_own_model_is_gone_is_left_out_by_self(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """`self` names another judge in each cell."""
    react, other = await two_cells(tmp_path / "m")
    (tmp_path / "judge.jsonl").write_text(json.dumps({"text": steps((0, 0.1), (1, 0.9))}) + "\n")
    for cell, model in ((react, f"scripted:{tmp_path / 'judge.jsonl'}"), (other, "gone:model")):
        config = json.loads((cell / "run.json").read_text())
        (cell / "run.json").write_text(json.dumps({**config, "model": model}))
    found = [credit async for credit in assign_credit(tmp_path / "m", judge="self")]
    assert {credit.rollout: credit.error for credit in found} == {"react-failed": "", "react-passed": ""}
    assert f"{other} was left out: its own model, gone:model, cannot be had" in caplog.text


async def test_the_command_says_which_cells_are_left_out_and_why(tmp_path: Path) -> None:
    orchard = command(tmp_path)
    react, other = await two_cells(tmp_path / "m")
    asked = ("data", "credit", "m", "--estimator", "branch")
    told = orchard(*asked, "--dry-run")
    assert told.returncode == Exit.OK, told.stderr
    assert f"left out   {other.relative_to(tmp_path)}" in told.stdout
    assert "harness command cannot be replayed" in told.stdout
    done = orchard(*asked, "--yes", "--json")
    assert done.returncode == Exit.UNSOUND, done.stderr
    said = json.loads(done.stdout)
    assert [*said["refused"]] == [str(other.relative_to(tmp_path))]
    assert said["directories"] == [str((react / "credit" / "branch").relative_to(tmp_path))]
    assert not (other / "credit").exists()
    assert open_credits(react / "credit" / "branch").by_rollout["react-passed"].resolved
    alone = orchard("data", "credit", str(other), *asked[3:])
    assert alone.returncode != Exit.OK
    assert "harness command cannot be replayed" in alone.stderr
