"""The programs to play with: the stand-in always, the real one where it is on PATH."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

STANDIN = Path(__file__).parent / "standin" / "zeroclaw"


@pytest.fixture
def standin(tmp_path: Path) -> Path:
    """A copy that every user may run."""
    copy = tmp_path / "zeroclaw"
    shutil.copyfile(STANDIN, copy)
    copy.chmod(0o755)
    return copy


@pytest.fixture
def real() -> Path:
    """The real program."""
    found = shutil.which("zeroclaw")
    if found is None:
        pytest.skip("zeroclaw is not on PATH: put a release of its own project there")
    return Path(found)
