"""A wall clock that steps, for whole programs: a small library that is preloaded into them."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import pytest

HOUR_S = 3600


class SteppedClock:
    """One clock; programs that have its `env` go by it."""

    def __init__(self, library: Path, file: Path) -> None:
        self._file = file
        file.write_bytes(bytes(8))
        self.env = {"LD_PRELOAD": str(library), "STEPPED_CLOCK": str(file)}
        """What a program needs in its environment."""

    def step_to(self, seconds: int) -> None:
        """So much ahead of the true time from now on; below zero: behind it."""
        with self._file.open("r+b") as file:  # in place: the programs have it mapped
            file.write(struct.pack("=q", seconds))


def built(folder: Path) -> Path:
    """The library. Skips where it cannot be had."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler on this machine: apt-get install gcc libc6-dev")
    library = folder / "clock.so"
    source = Path(__file__).with_name("clock.c")
    done = subprocess.run(
        [compiler, "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o", str(library), str(source)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return library
