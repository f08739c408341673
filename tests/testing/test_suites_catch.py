"""Every deliberate fault is caught by the very test that is meant for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.testing.faulty import (
    formats,
    harnesses,
    models,
    rewards,
    sandbox_commands,
    sandbox_files,
    sandbox_life,
    sandbox_snapshots,
    sandbox_terminals,
    tasksets,
    trainers,
)

_MODULES = (
    formats, harnesses, models, rewards, sandbox_commands, sandbox_files, sandbox_life, sandbox_snapshots,
    sandbox_terminals, tasksets, trainers,
)  # fmt: skip

FAULTS = {
    name: (Path(str(module.__file__)), found.caught_by)
    for module in _MODULES
    for name, found in vars(module).items()
    if name.startswith("Test") and hasattr(found, "caught_by")
}
"""The faulty class's file and the test that must fail, by class name."""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What one inner run of all faults said: the ways each class's tests ended."""
    report = tmp_path_factory.mktemp("inner") / "report.xml"
    wanted = [f"{path}::{name}::{test}" for name, (path, test) in FAULTS.items()]
    options = ["-q", "-p", "no:cacheprovider", "--no-header", "-x", "--maxfail=10000", f"--junitxml={report}"]
    root = Path(__file__).parents[2]
    inner = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *wanted],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert report.exists(), inner.stdout + inner.stderr
    ended: dict[str, list[str]] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        name = case.attrib["classname"].rsplit(".", 1)[-1]
        ended.setdefault(name, []).append(next((child.tag for child in case), "passed"))
    return ended


@pytest.mark.parametrize("name", FAULTS)
def test_the_fault_is_caught(name: str, outcomes: dict[str, list[str]]) -> None:
    assert "failure" in outcomes.get(name, []), f"{FAULTS[name][1]} ended with {outcomes.get(name)}"


def test_there_are_enough_faults() -> None:
    assert len(FAULTS) > 50
    assert all(test for _, test in FAULTS.values())
