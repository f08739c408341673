"""The wheels of every distribution build, install and run in a clean environment away from the repository."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
UV = Path(sys.executable).with_name("uv")
AGENTS = {f"orchard_core/sandbox/agent/bin/orchard-agent-linux-{arch}" for arch in ("amd64", "arm64")}
ELF_MACHINE = {"amd64": 62, "arm64": 183}
DATA = ("orchard_core/cli/scaffold/templates", "orchard_core/evals/html", "orchard_core/harness/external/kit")
"""Folders whose files are read when they are needed."""

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("wheels")]


def run(*command: str | Path, cwd: Path, **env: str) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, f"{command}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not UV.exists():
        pytest.skip("uv is not beside this interpreter: pip install uv")
    out = tmp_path_factory.mktemp("wheels")
    run("sh", ROOT / "tools" / "wheels.sh", out, cwd=ROOT)
    return out


def test_the_core_wheel_carries_a_static_agent_for_both_architectures(wheels: Path) -> None:
    (core,) = wheels.glob("orchard_core-*.whl")
    with zipfile.ZipFile(core) as archive:
        assert set(archive.namelist()) >= AGENTS | {"orchard_core/py.typed"}
        for name in AGENTS:
            head = archive.read(name)[:20]
            assert head[:4] == b"\x7fELF"
            assert int.from_bytes(head[18:20], "little") == ELF_MACHINE[name.rpartition("-")[2]]


def test_beside_the_wheels_lie_the_versions_of_the_lock(wheels: Path) -> None:
    locked = re.findall(r"^([\w.-]+==[\w.+!-]+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    lines = (wheels / "constraints.txt").read_text().splitlines()
    assert [line.split()[0] for line in lines] == locked
    assert len(locked) > 100
    assert "--hash" not in "".join(lines)


def test_the_core_wheel_carries_every_template_style_sheet_and_kit_file(wheels: Path) -> None:
    (core,) = wheels.glob("orchard_core-*.whl")
    listed = run("git", "ls-files", "-z", *DATA, cwd=ROOT).split("\0")
    wanted = {name for name in listed if name and (ROOT / name).exists()}
    assert "orchard_core/evals/html/style.css" in wanted
    assert {Path(name).suffix for name in wanted} >= {".jinja", ".html", ".css", ".py"}
    with zipfile.ZipFile(core) as archive:
        assert wanted - set(archive.namelist()) == set()


def test_the_wheels_install_and_run_away_from_the_repository(wheels: Path, tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    run(UV, "venv", "--quiet", "--python", sys.executable, venv, cwd=tmp_path)
    constraints = ("--constraint", wheels / "constraints.txt")
    run(
        UV, "pip", "install", "--quiet", "--python", venv / "bin" / "python", *constraints,
        *sorted(wheels.glob("*.whl")), cwd=tmp_path,
    )  # fmt: skip
    orchard = venv / "bin" / "orchard"
    listed = json.loads(run(orchard, "plugins", "--json", cwd=tmp_path))
    names = {item["name"] for item in listed["plugins"]}
    assert {"local", "react", "workbench", "oracle"} <= names
    assert listed["broken"] == []
    out = tmp_path / "run"
    run(
        orchard, "run", "workbench:2", "--harness", "react", "--model", "oracle", "--out", out, cwd=tmp_path,
    )  # fmt: skip
    report = json.loads(run(orchard, "report", out, "--json", cwd=tmp_path))
    assert json.dumps(report)
    rollouts = run(orchard, "show", out, "--json", cwd=tmp_path)
    assert rollouts.count('"completed"') >= 2
    run(orchard, "report", out, "--html", cwd=tmp_path)
    assert "<style>" in (out / "report.html").read_text(encoding="utf-8")
    made = json.loads(run(orchard, "new", "harness", "first", "--json", cwd=tmp_path))
    run(
        UV, "pip", "install", "--quiet", "--python", venv / "bin" / "python", *constraints, "--no-deps",
        tmp_path / made["directory"], cwd=tmp_path,
    )  # fmt: skip
    run(
        orchard, "run", "workbench:1", "--harness", "first", "--model", "oracle", "--out", tmp_path / "first",
        cwd=tmp_path,
    )  # fmt: skip
