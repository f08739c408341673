"""A matrix as Markdown has every table, and nothing in it works as markup."""

from __future__ import annotations

from pathlib import Path

from orchard_core import TrainedOn
from orchard_core.evals.matrix import build_matrix
from orchard_core.evals.matrix_markdown import matrix_markdown
from orchard_core.rollout.matrix.plan import cell_directory, write_plan
from orchard_core.rollout.store.files import DiskFiles

from .test_matrix import key_of, plan_of, write_cell, write_matrix

NASTY = "a|b <script>alert(1)</script> [x](javascript:alert(1)) \x1b[31m @all https://evil.example"


async def test_every_table_is_there_and_every_row_has_its_columns(tmp_path: Path) -> None:
    text = matrix_markdown(build_matrix(await write_matrix(tmp_path / "m")))
    heads = [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")]
    assert heads == [
        "pass@1",
        "Several attempts",
        "Differences",
        "Whose doing the outcomes are",
        "Spent",
        "Tasks of set: passed of planned",
        "Methods",
    ]
    for table in text.split("\n\n"):
        rows = [line for line in table.splitlines() if line.startswith("| ")]
        assert len({row.count("|") for row in rows}) <= 1
    assert "+50.0 [" in text
    assert "| t1 | 0/4 | 4/4 | 2/4 |" in text


async def test_a_hostile_harness_name_stays_text(tmp_path: Path) -> None:
    root = tmp_path / "m"
    root.mkdir()
    write_plan(DiskFiles(), root, plan_of(NASTY, "gone"))
    trained = TrainedOn(harness=NASTY)
    await write_cell(cell_directory(root, key_of(NASTY)), (4, 2), harness=NASTY, trained=trained)
    text = matrix_markdown(build_matrix(root))
    assert "Transfer" in text
    assert "not started yet" in text
    for live in ("<script", "](javascript", "\x1b", "@all", "https://", "a|b"):
        assert live not in text
