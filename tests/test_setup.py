"""Set-up: says what is missing, redoes nothing, and works with pip alone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
STAMP = ".venv/.set-up"


def run(*command: str | Path, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """What a user gets: the files that git keeps, as they are now."""
    listed = run("git", "ls-files", "-z", cwd=ROOT)
    if listed.returncode:
        pytest.skip("this is no git checkout")
    clone = tmp_path / "clone"
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).exists():  # one removed but not yet committed is gone
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, clone / name)
    return clone


def test_no_python_is_said_with_a_way_out(tmp_path: Path) -> None:
    done = run("sh", ROOT / "tools" / "setup.sh", tmp_path / "venv", cwd=tmp_path, PYTHON="")
    assert done.returncode == 1
    assert "no Python 3.11 or newer" in done.stderr
    assert "to mend:" in done.stderr
    assert not (tmp_path / "venv").exists()


def test_a_python_that_cannot_make_an_environment_is_said(tmp_path: Path) -> None:
    broken = tmp_path / "bin" / "python3"
    broken.parent.mkdir()
    broken.write_text('#!/bin/sh\n[ "$1" = -c ]\n')
    broken.chmod(0o755)
    for tool in ("sh", "dirname", "rm"):
        (broken.parent / tool).symlink_to(shutil.which(tool) or f"/bin/{tool}")
    setup = ROOT / "tools" / "setup.sh"
    done = run("sh", setup, tmp_path / "venv", cwd=tmp_path, PYTHON=str(broken), PATH=str(broken.parent))
    assert done.returncode == 1
    assert "cannot make a virtual environment" in done.stderr
    assert not (tmp_path / "venv").exists()


@pytest.mark.parametrize("python", ["/nonexistent", "false"])
def test_a_python_that_is_none_or_too_old_is_said(tmp_path: Path, python: str) -> None:
    done = run("sh", ROOT / "tools" / "setup.sh", tmp_path / "venv", cwd=tmp_path, PYTHON=python)
    assert done.returncode == 1
    assert f"{python} is not a Python 3.11 or newer" in done.stderr
    assert not (tmp_path / "venv").exists()


def test_an_environment_without_pip_is_said(tmp_path: Path) -> None:
    made = run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    done = run("sh", ROOT / "tools" / "setup.sh", tmp_path / "venv", cwd=tmp_path, PYTHON=sys.executable)
    assert done.returncode == 1
    assert "has no pip" in done.stderr
    assert "make clean" in done.stderr


def pending(clone: Path) -> bool:
    """Whether make would set up again."""
    done = run("make", "--question", STAMP, cwd=clone)
    assert done.returncode in {0, 1}, done.stderr
    return done.returncode == 1


def test_nothing_is_set_up_again_unless_what_it_is_made_of_changed(clone: Path) -> None:
    assert pending(clone)
    stamp = clone / STAMP
    stamp.parent.mkdir()
    stamp.touch()
    assert not pending(clone)
    plugin = next(clone.glob("plugins/*/pyproject.toml")).relative_to(clone)
    later = time.time() + 60
    for name in (
        "requirements.lock",
        "pyproject.toml",
        "hatch_build.py",
        "tools/setup.sh",
        "agent/main.go",
        plugin,
    ):
        before = (clone / name).stat().st_mtime
        os.utime(clone / name, (later, later))
        assert pending(clone), f"{name} changed and make would not set up"
        os.utime(clone / name, (before, before))
    (clone / "README.md").touch()
    assert not pending(clone)


def called_by_setup(tmp_path: Path, *, uv_works: bool, **env: str) -> str:
    """What set-up asks of an environment that only writes down what it is asked."""
    programs = tmp_path / "venv" / "bin"
    programs.mkdir(parents=True)
    asked = tmp_path / "asked"
    for name, code in (("python", 0), ("uv", 0 if uv_works else 1)):
        (programs / name).write_text(f'#!/bin/sh\necho {name} "$@" >>"{asked}"\nexit {code}\n')
        (programs / name).chmod(0o755)
    done = run("sh", ROOT / "tools" / "setup.sh", tmp_path / "venv", cwd=tmp_path, PYTHON="python3", **env)
    assert done.returncode == 0, done.stderr
    return asked.read_text()


def test_uv_installs_where_it_works(tmp_path: Path) -> None:
    asked = called_by_setup(tmp_path, uv_works=True, ORCHARD_SETUP_PIP="")
    assert "uv pip install" in asked
    assert "python -m pip install --quiet --disable-pip-version-check -r requirements.lock" not in asked


def test_pip_installs_where_uv_fails(tmp_path: Path) -> None:
    asked = called_by_setup(tmp_path, uv_works=False, ORCHARD_SETUP_PIP="")
    assert "python -m pip install --quiet --disable-pip-version-check -r requirements.lock" in asked


def test_uv_is_not_even_fetched_when_told_to_use_pip(tmp_path: Path) -> None:
    asked = called_by_setup(tmp_path, uv_works=True, ORCHARD_SETUP_PIP="1")
    assert "uv" not in asked.replace(str(tmp_path), "")
    assert "-r requirements.lock" in asked


@pytest.mark.slow
@pytest.mark.nightly
def test_pip_alone_sets_up_a_clone_that_works(clone: Path, tmp_path: Path) -> None:
    without_uv = {"UV_OFFLINE": "1", "UV_NO_CACHE": "1"}
    done = run("make", STAMP, f"PYTHON={sys.executable}", cwd=clone, **without_uv)
    assert done.returncode == 0, done.stderr
    assert "using pip" in done.stderr
    assert not pending(clone)
    listed = run(clone / ".venv" / "bin" / "orchard", "plugins", "--json", cwd=tmp_path)
    assert listed.returncode == 0, listed.stderr
    answer = json.loads(listed.stdout)
    assert answer["broken"] == []
    assert {"local", "react", "workbench", "claw-bench"} <= {item["name"] for item in answer["plugins"]}
