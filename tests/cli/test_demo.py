"""`orchard demo`, the first thing a newcomer runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from orchard_core import open_run
from orchard_core.cli.exits import Exit

from .conftest import Orchard


@pytest.mark.slow
def test_the_demo_runs_at_least_60_rollouts_and_says_what_to_type_next(
    orchard: Orchard, tmp_path: Path
) -> None:
    done = orchard("demo", "--out", "d")
    assert done.returncode == Exit.OK, done.stderr
    runs = [open_run(path.parent) for path in sorted((tmp_path / "d").glob("*/run.json"))]
    rollouts = [rollout for run in runs for rollout in run]
    assert len(rollouts) >= 60
    assert {run.config.model for run in runs} == {"oracle", "noisy-oracle"}
    assert all(rollout.provenance.provider == "local" for rollout in rollouts)
    assert all(rollout.score is not None for rollout in rollouts)
    assert all(rollout.trajectory.calls for rollout in rollouts)
    assert {rollout.score for rollout in rollouts if rollout.model == "oracle"} == {1.0}
    assert 0.0 in {rollout.score for rollout in rollouts if rollout.model == "noisy-oracle"}

    assert (tmp_path / "d" / "report.md").read_text().count("pass@1") >= len(runs)
    assert "Report: d/report.md" in done.stdout
    for words in ("OPENAI_API_KEY", "vLLM", "Ollama", "orchard run workbench:16 --model openai:"):
        assert words in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    shown = re.findall(r"orchard ((?:show|data mix) d/\S+.*)", done.stdout)
    assert len(shown) == 3
    for command in shown:
        assert orchard(*command.split()).returncode == Exit.OK
