"""A run whose sandboxes a service gives, end to end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from orchard_core import load_provider, open_run

from ..service.running import GENEROUS_S, parts_of, running


@pytest.mark.slow
@pytest.mark.usefixtures("isolation")
def test_a_run_in_the_sandboxes_of_a_service_scores_and_leaves_nothing(tmp_path: Path) -> None:
    with running(lambda: parts_of(load_provider("local"))) as service:
        ended = subprocess.run(
            [
                sys.executable, "-m", "orchard_core.cli.main", "run", "workbench:3", "--model", "oracle",
                "--sandbox", "remote", "--out", "made", "--json",
            ],
            cwd=tmp_path,
            env={**os.environ, "SANDBOX_BASE_URL": service.url, "SANDBOX_API_KEY": "s3cret-of-the-user"},
            capture_output=True,
            text=True,
            timeout=4 * GENEROUS_S,
            check=False,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stderr
        left = httpx.get(f"{service.url}/v2/sandboxes").json()["sandboxes"]
    json.loads(ended.stdout)
    rollouts = list(open_run(tmp_path / "made"))
    assert [rollout.reward.score for rollout in rollouts if rollout.reward] == [1.0] * 3
    assert left == []
    kept = [path for path in (tmp_path / "made").rglob("*") if path.is_file()]
    assert not any(b"s3cret-of-the-user" in path.read_bytes() for path in kept)
