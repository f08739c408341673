"""The list of runs fits the terminal without breaking a name."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import JsonValue

from orchard_core.cli.exits import Exit
from orchard_core.cli.runs import listed

from .conftest import Orchard

ROW: dict[str, JsonValue] = {
    "run": "runs/20261130-150000-workbench-20-react-Qwen3-Coder-30B-A3B-Instruct", "taskset": "workbench:20",
    "harness": "react", "model": "openai:Qwen/Qwen3-Coder-30B-A3B-Instruct", "planned": 80, "finished": 8,
    "scored": 8, "mean_score": 0.5, "started": "2026-11-30T15:00:00+00:00",
}  # fmt: skip


def test_a_wide_terminal_and_a_pipe_get_a_table() -> None:
    for width in (200, None):
        head, row = listed([ROW], width=width)
        assert head.split() == ["RUN", "TASKS", "HARNESS", "MODEL", "DONE", "SCORE", "STARTED"]
        assert str(ROW["run"]) in row
        assert "8/80" in row


def test_80_columns_get_two_lines_a_run_and_every_name_whole() -> None:
    name, facts = listed([ROW], width=80)
    assert name == ROW["run"]
    assert "8/80 done  score 0.500" in facts
    assert facts.endswith("workbench:20 · react · openai:Qwen/Qwen3-Coder-30B-A3B-Instruct")


def test_two_programs_of_the_harness_command_are_told_apart_and_make_two_runs(
    orchard: Orchard, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.sh").write_text(f"#!/bin/sh\n# {name}\nexit 3\n")
        (tmp_path / f"{name}.sh").chmod(0o755)
    asked = ("run", "workbench:1", "--model", "oracle", "--out", "runs/a")
    orchard(*asked, "--harness", "command:./a.sh")
    listed = json.loads(orchard("runs", "list", "--json").stdout)
    assert [run["harness"] for run in listed] == ["command:./a.sh"]
    name = json.loads(orchard("show", "runs/a", "--json").stdout)[0]["id"]
    for shown in (orchard("report", "runs/a"), orchard("show", "runs/a", name)):
        assert "command:./a.sh" in shown.stdout
    other = orchard(*asked, "--harness", "command:./b.sh", "--resume")
    assert other.returncode == Exit.USAGE
    assert "another configuration" in other.stderr
