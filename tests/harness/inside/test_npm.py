"""Programs from npm, installed once."""

from __future__ import annotations

import asyncio
import logging
import shutil
import subprocess
from pathlib import Path

import pytest

from orchard_core import ConfigError, NpmProgram
from orchard_core.harness.inside.npm import NpmTree, find_program

SMALL = ("is-number@7.0.0",)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def registry() -> None:
    """A registry that npm reaches."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("needs npm: install Node.js with npm, see tools/needs.sh")
    ask = [npm, "view", *SMALL, "version", "--fetch-retries=0"]
    if subprocess.run(ask, capture_output=True, check=False, timeout=120).returncode:
        pytest.skip(f"npm reaches no registry: see `npm view {SMALL[0]}`")


@pytest.mark.usefixtures("registry")
@pytest.mark.slow
async def test_however_many_ask_it_is_installed_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "orchard.harness"):
        paths = await asyncio.gather(*(NpmTree(packages=SMALL).path() for _ in range(4)))
    assert len(set(paths)) == 1
    assert (paths[0] / "node_modules/is-number/package.json").is_file()
    assert [record.message.split()[0] for record in caplog.records] == ["installing"]
    assert [entry.name for entry in paths[0].parent.iterdir() if entry.is_dir()] == ["is-number@7.0.0"]


@pytest.mark.usefixtures("registry")
@pytest.mark.slow
async def test_a_package_that_does_not_exist_leaves_nothing_behind(cache: Path) -> None:
    with pytest.raises(ConfigError, match="npm could not install is-number@99"):
        await NpmTree(packages=("is-number@99.0.0",)).path()
    assert [entry for entry in (cache / "orchard/npm").iterdir() if entry.is_dir()] == []


async def test_without_npm_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(ConfigError, match="npm, which is not here") as caught:
        await NpmTree(packages=SMALL).path()
    assert "nodejs" in caught.value.hint


async def test_what_is_there_needs_no_npm(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    program = NpmProgram(packages=("@scope/tool@1.2.3",), path="bin/{arch}*/tool")
    before = program.installed
    tree = cache / "orchard/npm/scope-tool@1.2.3"
    for name in ("x64", "x64-baseline", "arm64", "arm64-baseline"):
        (tree / "bin" / name).mkdir(parents=True)
        (tree / "bin" / name / "tool").touch()
    (mount,) = await program.mounts()
    (command,) = await program.command()
    assert (before, program.installed) == (False, True)
    assert mount.source == str(tree)
    assert command.startswith(f"{mount.target}/bin/")
    assert command.endswith("-baseline/tool")


def test_a_tree_without_the_program_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no bin/tool"):
        find_program(tmp_path, "bin/tool")
