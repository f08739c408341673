"""What the pages of a matrix say, asked for over the wire."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from orchard_core.rollout.matrix.plan import (
    MatrixPart,
    MatrixPlan,
    MatrixShared,
    cell_directory,
    read_plan,
    write_plan,
)
from orchard_core.rollout.store.files import DiskFiles

from .conftest import Opens
from .making import listed, make_rollout, write_run


@pytest.fixture
async def matrix(tmp_path: Path) -> Path:
    root = tmp_path / "matrix"
    plan = MatrixPlan.product(
        harnesses=[MatrixPart(name="react"), MatrixPart(name="miniswe"), MatrixPart(name="late")],
        models=[MatrixPart(name="model")],
        tasksets=[MatrixPart(name="bench")],
        shared=MatrixShared(attempts=2),
        created_at=0.0,
    )
    root.mkdir()
    write_plan(DiskFiles(), root, plan)
    for cell, score in zip(plan.cells[:2], (1.0, 0.0), strict=True):
        name = cell.harness.name
        rollouts = [
            make_rollout(task, attempt, score=score, id=f"{name}-{task}-{attempt}", harness=name)
            for task in ("totals-1", "totals-2")
            for attempt in range(2)
        ]
        await write_run(cell_directory(root, cell.key), rollouts, harness=name)
    return root


async def test_a_matrix_is_a_list_of_all_its_rollouts_and_a_grid(viewer: Opens, matrix: Path) -> None:
    async with viewer(matrix) as client:
        assert len(listed(await client.page("/1/"))) == 8
        assert len(listed(await client.page("/1/?harness=miniswe"))) == 4
        assert len(listed(await client.page("/1.2/"))) == 4
        grid = await client.page("/1/matrix")
        assert "<b>100%</b>" in grid
        assert "<b>0%</b>" in grid
        assert 'href="/1.1/react-totals-1-0?in=matrix"' in grid
        page = await client.page("/1.1/react-totals-2-1?in=matrix")
        assert '<link rel="next" href="/1.2/miniswe-totals-1-0?&amp;in=matrix">' in page
        assert (await client.ask("/1.3/")).status == 404


async def test_a_cell_that_begins_and_one_that_is_added_are_found(viewer: Opens, matrix: Path) -> None:
    async with viewer(matrix) as client:
        plan = read_plan(matrix)
        added = plan.cells[0].model_copy(update={"model": MatrixPart(name="other")})
        write_plan(DiskFiles(), matrix, plan.model_copy(update={"cells": (*plan.cells, added)}))
        for number, cell in ((3, plan.cells[2]), (4, added)):
            rollout = make_rollout("totals-9", id=f"new-{number}")
            await write_run(cell_directory(matrix, cell.key), [rollout], harness=cell.harness.name)
            assert listed(await client.page(f"/1.{number}/")) == ["totals-9#0"]
        assert len(listed(await client.page("/1/"))) == 10


async def test_one_task_under_two_harnesses_stands_side_by_side(viewer: Opens, matrix: Path) -> None:
    async with viewer(matrix) as client:
        pick = await client.page("/task?id=totals-1&a=/1.1/react-totals-1-0")
        assert len(re.findall(r'name="a"', pick)) == 4
        assert re.search(r'name="b" value="/1.2/[^"]+"[^>]* checked', pick)  # another harness is proposed
        page = await client.page("/compare?a=/1.1/react-totals-1-0&b=/1.2/miniswe-totals-1-0")
        assert page.count('class="half"') == 12
        assert page.count("the same") == 6
        assert re.search(r'<tr class="differs"><th scope="row">score', page)
