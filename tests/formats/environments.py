"""Other projects' packages in environments of their own: made once, kept in the user's cache."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import pytest

from orchard_core import ConfigError, managed_python

HERE = Path(__file__).parent


def python_with(name: str, python: str) -> Path:
    """The interpreter of an environment that holds what `NAME.txt` pins; skips where it cannot be made."""
    try:
        return asyncio.run(
            managed_python(
                f"formats-{name}",
                HERE / f"{name}.txt",
                python=python,
                size="a few MB",
                variable=f"ORCHARD_TEST_{name.upper()}_PYTHON",
            )
        )
    except ConfigError as error:
        pytest.skip(f"{name} is checked with its own package, which needs an index or a cache of it: {error}")


def run(python: Path, program: str, *arguments: str, path: Path | None = None) -> str:
    """What a program of ours says in that interpreter."""
    done = subprocess.run(
        [str(python), "-c", program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={"PYTHONPATH": str(path) if path else "", "HF_HUB_OFFLINE": "1", "HOME": str(Path.home())},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
