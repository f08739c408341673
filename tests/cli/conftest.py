"""The real command, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli import forked

ROOT = Path(__file__).parents[2]

Completed = subprocess.CompletedProcess[str]
Orchard = Callable[..., Completed]


def environment(**extra: str) -> dict[str, str]:
    """A plain environment that finds this checkout."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    return kept | {"PYTHONPATH": str(ROOT), "COLUMNS": "100"} | extra


ARGV = [sys.executable, "-m", "orchard_core.cli.main"]


def command(where: Path) -> Orchard:
    """`orchard(*args, **environment)`, run in this directory.

    Each is a process of its own; with `ORCHARD_TESTS_SPAWN` set, as in `make nightly`, or where the case
    steers Python itself, it does its own imports too.
    """

    def run(*args: str, **extra: str) -> Completed:
        if not os.environ.get("ORCHARD_TESTS_SPAWN") and not any(name.startswith("PYTHON") for name in extra):
            return forked.run(args, cwd=where, environment=environment(**extra), timeout_s=120)
        return subprocess.run(
            [*ARGV, *args], cwd=where, env=environment(**extra), capture_output=True, text=True,
            timeout=120, check=False,
        )  # fmt: skip

    return run


@pytest.fixture
def orchard(tmp_path: Path) -> Orchard:
    """The command, run in an empty directory."""
    return command(tmp_path)


@pytest.fixture
def plugin_path(tmp_path: Path) -> Callable[[str, str], str]:
    """`plugin_path(name, source)` installs a distribution of one module; gives a PYTHONPATH with it."""
    site = tmp_path / ".site"

    def install(name: str, source: str) -> str:
        info = site / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[orchard.plugins]\n{name} = {name}_module\n")
        (site / f"{name}_module.py").write_text(source)
        return f"{site}:{ROOT}"

    return install
