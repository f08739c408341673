"""Rows of real harnesses on real tasks in real sandboxes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchard_core import DatasetWriter, SampleLabel, open_run, read_rows, run_rollouts
from orchard_core.datasets.verify import Verifier
from orchard_core.datasets.verify_row import row_faults


@pytest.mark.parametrize(
    "harness",
    [
        "react",
        "miniswe",
        pytest.param("cli:claude", marks=pytest.mark.slow),
        pytest.param("cli:codex", marks=pytest.mark.slow),
        pytest.param("openhands", marks=pytest.mark.slow),
    ],
)
async def test_a_harness_gives_sound_rows_whose_answers_are_its_turns(harness: str, tmp_path: Path) -> None:
    out = tmp_path / "first"
    async for _ in run_rollouts("workbench:2", harness=harness, model="oracle", out=out):
        pass
    rows = list(read_rows(out))
    rollouts = {rollout.id: rollout for rollout in open_run(out)}
    mains = [row for row in rows if row.label is SampleLabel.MAIN]
    assert {row.rollout for row in mains} == set(rollouts)
    for row in mains:
        rollout = rollouts[row.rollout]
        assert list(row_faults(row)) == []
        assert (row.reward, row.harness, row.model) == (1.0, harness, "oracle")
        assert row.provenance["run"] == "first"
        assert row.task_text == rollout.task.instruction
        assert sum(row.mask) == row.turns == len(rollout.trajectory.calls)
        assert row.token_count_exact
        assert row.token_count == rollout.trajectory.calls[-1].usage.total
        assert json.loads(row.tools)
        assert str(tmp_path) not in row.model_dump_json()
    with DatasetWriter(tmp_path / "set") as writer:
        for row in rows:
            writer.write(row)
        writer.finish()
    verifier = Verifier(tmp_path / "set", deep=True)
    assert [row.id for row in verifier.rows()] == [row.id for row in rows]
    assert verifier.report().faults == ()
