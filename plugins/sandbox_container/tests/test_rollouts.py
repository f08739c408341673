"""Whole rollouts in containers, by the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchard_core import load_provider

if TYPE_CHECKING:
    from .conftest import Podman


def test_the_provider_is_found_by_its_name() -> None:
    assert load_provider("container").name == "container"


@pytest.mark.slow
def test_rollouts_are_solved_and_scored_in_containers(
    podman: Podman, python_image: str, tmp_path: Path
) -> None:
    options = {"engine": podman.socket, "state_dir": str(tmp_path / "state"), "host_image": python_image}
    chosen = [word for name, value in options.items() for word in ("--sandbox-option", f"{name}={value}")]
    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("orchard")), "run", "workbench:2", "--harness", "react",
            "--model", "oracle", "--sandbox", "container", *chosen, "--out", str(tmp_path / "run"), "--json",
        ],
        env={**os.environ, "NO_COLOR": "1"}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    summary = json.loads(done.stdout)
    assert "completed" in json.dumps(summary)
    assert podman.run("ps", "--all", "--quiet") == ""
