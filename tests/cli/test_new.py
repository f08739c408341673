"""`orchard new`: what it writes installs, passes its suite and runs, unedited."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from orchard_core.cli.scaffold.blueprint import BLUEPRINTS, PluginName
from orchard_core.cli.scaffold.write import write_plugin

from .conftest import ROOT, Orchard, environment

KINDS = sorted(BLUEPRINTS)
MOST = 40
"""Lines of code that an author has to look at."""


def installed(home: Path, site: Path) -> str:
    """Install a distribution without its dependencies; gives a PYTHONPATH with it."""
    subprocess.run(
        [str(Path(sys.executable).parent / "uv"), "pip", "install", "--quiet", "--offline", "--no-deps",
         "--no-build-isolation", "--python", sys.executable, "--target", str(site), str(home)],
        check=True, capture_output=True,
    )  # fmt: skip
    return f"{site}:{ROOT}"


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_plugin_installs_is_listed_and_passes_its_own_tests(
    kind: str, orchard: Orchard, tmp_path: Path
) -> None:
    made = orchard("new", kind, "first-try")
    assert made.returncode == 0, made.stderr
    home = tmp_path / f"orchard-{kind}-first-try"
    path = installed(home, tmp_path / ".site")
    listed = json.loads(orchard("plugins", "--json", PYTHONPATH=path).stdout)
    assert [one for one in listed["plugins"] if one["name"] == "first-try" and one["kind"] == kind]
    tests = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"],
        cwd=home, env=environment(PYTHONPATH=path), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert tests.returncode == 0, tests.stdout[-3000:]
    assert " passed" in tests.stdout


def test_a_new_harness_solves_tasks_at_once(orchard: Orchard, tmp_path: Path) -> None:
    assert orchard("new", "harness", "eager").returncode == 0
    path = installed(tmp_path / "orchard-harness-eager", tmp_path / ".site")
    ran = orchard(
        "run", "workbench:2", "--harness", "eager", "--model", "oracle", "--out", "runs/eager", "--json",
        PYTHONPATH=path,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    report = json.loads(orchard("report", "runs/eager", "--json", PYTHONPATH=path).stdout)["reports"][0]
    assert (report["total"]["passed"], report["total"]["planned"]) == (2, 2)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_to_be_edited_is_short(kind: str, tmp_path: Path) -> None:
    blueprint = BLUEPRINTS[kind]
    written = write_plugin(blueprint, PluginName.of(kind, "short"), tmp_path)
    (edited,) = [path for path in written if path.name == f"{blueprint.module}.py"]
    assert 0 < code_lines(edited.read_text(encoding="utf-8")) <= MOST


def code_lines(text: str) -> int:
    """Lines that are neither blank, comment, docstring nor import."""
    skipped: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        documents = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, ast.stmt) and (documents or isinstance(node, ast.Import | ast.ImportFrom)):
            skipped |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = enumerate(text.splitlines(), start=1)
    return sum(bool(line.split("#")[0].strip()) for number, line in lines if number not in skipped)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_is_clean(kind: str, tmp_path: Path) -> None:
    write_plugin(BLUEPRINTS[kind], PluginName.of(kind, "clean"), tmp_path)
    home = tmp_path / f"orchard-{kind}-clean"
    for words in (["check"], ["format", "--check"]):
        done = subprocess.run(
            [str(Path(sys.executable).parent / "ruff"), *words, "--isolated", "--line-length", "110", "."],
            cwd=home, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", ["", "A", "a b", "../up", "a--b", "-a", "a.b", "é", "x" * 41, "a\nb"])
def test_a_name_that_cannot_be_spelled_is_refused(name: str, orchard: Orchard, tmp_path: Path) -> None:
    done = orchard("new", "harness", "--", name)
    assert done.returncode == 2
    assert "cannot be a plugin's name" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_is_never_overwritten(orchard: Orchard, tmp_path: Path) -> None:
    assert orchard("new", "reward", "mine").returncode == 0
    kept = tmp_path / "orchard-reward-mine" / "README.md"
    kept.write_text("mine")
    again = orchard("new", "reward", "mine")
    assert again.returncode == 2
    assert "is there already" in again.stderr
    assert kept.read_text() == "mine"


def test_json_tells_what_was_made_and_what_to_do_next(orchard: Orchard, tmp_path: Path) -> None:
    told = json.loads(orchard("new", "taskset", "mine", "--into", "deep/er", "--json").stdout)
    assert (tmp_path / told["edit"]).is_file()
    assert all((tmp_path / name).is_file() for name in told["files"])
    assert any(line.startswith("orchard check taskset:mine") for line in told["then"])
