"""Directories of generated tasks."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from orchard_core import ConfigError
from orchard_core.tasks.scratch import ScratchDirectory

HOLD = """
import sys
from pathlib import Path
from orchard_core.tasks.scratch import ScratchDirectory
held = ScratchDirectory(parent=Path(sys.argv[1]))
(held.path / "sub").mkdir()
print(held.path, flush=True)
sys.stdin.read()
"""


def holder(parent: Path) -> tuple[subprocess.Popen[str], Path]:
    """Another program that holds one."""
    command = [sys.executable, "-c", HOLD, str(parent)]
    program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    return program, Path(program.stdout.readline().strip())


def test_that_of_a_killed_program_goes_when_the_next_one_starts(tmp_path: Path) -> None:
    program, left = holder(tmp_path / "all")
    with program:
        program.send_signal(signal.SIGKILL)
    assert (left / "sub").is_dir()
    mine = ScratchDirectory(parent=tmp_path / "all")
    assert list((tmp_path / "all").iterdir()) == [mine.path]


def test_those_of_living_programs_stay(tmp_path: Path) -> None:
    program, theirs = holder(tmp_path)
    with program:
        first, second = ScratchDirectory(parent=tmp_path), ScratchDirectory(parent=tmp_path)
        assert {*tmp_path.iterdir()} == {theirs, first.path, second.path}
        assert program.stdin is not None
        program.stdin.close()
    assert not theirs.exists()


def test_it_goes_with_its_object(tmp_path: Path) -> None:
    made = ScratchDirectory(parent=tmp_path)
    del made
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_others_can_write_to_is_refused(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(ConfigError, match="this user alone"):
        ScratchDirectory(parent=tmp_path / "open")
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(ConfigError, match="this user alone"):
        ScratchDirectory(parent=tmp_path / "link")
