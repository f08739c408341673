"""How two runs differ: over all tasks and at each, with significance, and what may be the reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchard_core.cli.runs_diff import diff_lines
from orchard_core.evals.diff import RunDiff, diff_runs
from orchard_core.rollout.store.run import open_run

from .test_matrix import write_cell


async def diff_of(root: Path, left: tuple[int, ...], right: tuple[int, ...]) -> RunDiff:
    await write_cell(root / "a", left, model="small", seed=0)
    await write_cell(root / "b", right, model="large", seed=1)
    return diff_runs(open_run(root / "a"), open_run(root / "b"))


async def test_tasks_that_changed_stand_with_fishers_p_and_holms_correction(tmp_path: Path) -> None:
    diff = await diff_of(tmp_path, (0, 4, 2, 3), (4, 2, 2, 3))
    assert [(item.task, item.left_passed, item.right_passed) for item in diff.better] == [("t0", 0, 4)]
    assert [item.task for item in diff.worse] == ["t1"]
    [better] = diff.better
    assert better.p_value == pytest.approx(2 / 70)
    assert better.p_adjusted == pytest.approx(4 * 2 / 70)
    assert diff.difference is not None
    assert diff.difference.value == pytest.approx((1 - 0.5) / 4)
    # (1, -1/2): every one of the 4 patterns reaches 1/2.
    assert diff.p_value == 1.0
    assert {item.field for item in diff.comparison.config} >= {"model", "seed"}


async def test_equal_runs_say_so(tmp_path: Path) -> None:
    await write_cell(tmp_path / "a", (4, 2))
    await write_cell(tmp_path / "b", (4, 2))
    diff = diff_runs(open_run(tmp_path / "a"), open_run(tmp_path / "b"))
    text = "\n".join(diff_lines(diff, width=80))
    assert "0 better, 0 worse, 2 the same" in " ".join(text.split())
    assert "Nothing that was recorded" in text


async def test_runs_without_a_common_task_are_not_compared(tmp_path: Path) -> None:
    await write_cell(tmp_path / "a", (1,))
    await write_cell(tmp_path / "b", ())
    diff = diff_runs(open_run(tmp_path / "a"), open_run(tmp_path / "b"))
    assert (diff.tasks, diff.difference, diff.p_value) == (0, None, None)
    assert "The runs have no task in common." in diff_lines(diff, width=80)


@pytest.mark.parametrize("width", [60, 80, 120])
async def test_no_line_is_wider_than_the_terminal_and_nothing_works_as_a_control_code(
    tmp_path: Path, width: int
) -> None:
    await write_cell(tmp_path / "a", (0, 4), model="\x1b[31mred" + "very-long-" * 20)
    await write_cell(tmp_path / "b", (4, 0), model="m" * 300)
    diff = diff_runs(open_run(tmp_path / "a"), open_run(tmp_path / "b"))
    lines = diff_lines(diff, width=width)
    assert max(map(len, lines[3:])) <= width
    assert "\x1b" not in "".join(lines)
