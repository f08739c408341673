"""A matrix report pairs cells by task and reads nothing but journals."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchard_core import TrainedOn
from orchard_core.evals.matrix import build_matrix
from orchard_core.rollout.matrix.key import CellKey
from orchard_core.rollout.matrix.plan import (
    MatrixPart,
    MatrixPlan,
    MatrixShared,
    cell_directory,
    write_plan,
)
from orchard_core.rollout.store.files import DiskFiles
from orchard_core.rollout.store.writer import RunWriter

from .making import make_config, make_planned, make_rollout

PASSES = {"first": (4, 0, 2), "second": (4, 4, 4), "third": (2, 2, 2)}
"""Attempts of 4 that pass, at each of three tasks, by harness."""


def plan_of(*harnesses: str) -> MatrixPlan:
    return MatrixPlan.product(
        harnesses=[MatrixPart(name=name) for name in harnesses],
        models=[MatrixPart(name="oracle")],
        tasksets=[MatrixPart(name="set")],
        shared=MatrixShared(attempts=4),
        created_at=0.0,
    )


def key_of(harness: str) -> CellKey:
    return CellKey(harness=harness, model="oracle", taskset="set")


async def write_cell(
    directory: Path, passes: tuple[int, ...], *, attempts: int = 4, **config: object
) -> None:
    async with await RunWriter.open(directory, make_config(**config)) as writer:
        names = [f"t{number}" for number in range(len(passes))]
        await writer.plan([make_planned(name, n) for name in names for n in range(attempts)])
        for name, count in zip(names, passes, strict=True):
            for n in range(attempts):
                await writer.finish(make_rollout(name, n, score=float(n < count)))


async def write_matrix(root: Path) -> Path:
    root.mkdir(exist_ok=True)
    write_plan(DiskFiles(), root, plan_of(*PASSES))
    for harness, passes in PASSES.items():
        await write_cell(cell_directory(root, key_of(harness)), passes, harness=harness)
    return root


async def test_a_plain_run_is_a_matrix_of_one_cell(tmp_path: Path) -> None:
    await write_cell(tmp_path / "run", (4, 2))
    report = build_matrix(tmp_path / "run")
    assert [cell.key for cell in report.cells] == [CellKey(harness="fake", model="fake", taskset="set")]
    assert report.cells[0].run == "."
    assert [(task.task, task.passed, task.planned) for task in report.cells[0].tasks] == [
        ("t0", 4, 4),
        ("t1", 2, 4),
    ]
    assert report.differences == ()


async def test_each_pair_of_cells_is_compared_task_by_task(tmp_path: Path) -> None:
    report = build_matrix(await write_matrix(tmp_path / "m"))
    by_pair = {(item.left.harness, item.right.harness): item for item in report.differences}
    assert list(by_pair) == [("first", "second"), ("first", "third"), ("second", "third")]
    first = by_pair["first", "second"].difference
    assert first is not None
    assert first.value == pytest.approx((0 + 1 + 0.5) / 3)
    # (0, 4/4, 2/4): of 4 sign patterns of the two that differ, 2 reach 6/4.
    assert by_pair["first", "second"].p_value == pytest.approx(2 / 4)
    # (-2/4, -2/4, -2/4): 2 of 8; it comes first in Holm's order, times 3.
    assert by_pair["second", "third"].p_value == pytest.approx(2 / 8)
    assert by_pair["second", "third"].p_adjusted == pytest.approx(3 * 2 / 8)
    # (-1/2, 1/2, 0): sums to 0, and nothing is less extreme.
    assert by_pair["first", "third"].p_value == 1.0


async def test_cells_without_a_run_are_listed_with_their_reason(tmp_path: Path) -> None:
    root = await write_matrix(tmp_path / "m")
    refused = plan_of(*PASSES, "later", "broken").with_refusals({key_of("broken"): "no such plugin"})
    write_plan(DiskFiles(), root, refused)
    report = build_matrix(root)
    assert len(report.cells) == 3
    assert {item.key.harness: item.reason for item in report.refused} == {
        "later": "",
        "broken": "no such plugin",
    }


async def test_models_that_say_where_they_were_trained_give_a_transfer_table(tmp_path: Path) -> None:
    root = tmp_path / "m"
    root.mkdir()
    write_plan(DiskFiles(), root, plan_of("react", "other"))
    trained = TrainedOn(harness="react")
    await write_cell(cell_directory(root, key_of("react")), (4, 4, 2, 2), harness="react", trained=trained)
    await write_cell(cell_directory(root, key_of("other")), (4, 0, 0, 2), harness="other", trained=trained)
    table = {
        (item.train_harness, item.eval_harness): item.pass_at_1.planned
        for item in build_matrix(root).transfer
    }
    assert {pair: rate.value for pair, rate in table.items() if rate} == {
        ("react", "react"): pytest.approx(0.75),
        ("react", "other"): pytest.approx(0.375),
    }


async def test_only_journals_are_read(tmp_path: Path) -> None:
    root = await write_matrix(tmp_path / "m")
    for shard in root.glob("cells/*/shards/*"):
        shard.unlink()
    report = build_matrix(root)
    assert [cell.report.total.finished for cell in report.cells] == [12, 12, 12]
    assert all(len(task.rollouts) == 4 for cell in report.cells for task in cell.tasks)
