"""The list of runs fits the terminal without breaking a name."""

from __future__ import annotations

from pydantic import JsonValue

from orchard_core.cli.runs import listed

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
