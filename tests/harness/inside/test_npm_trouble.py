"""Programs from npm where something is in the way: each message says what, and what to do."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from orchard_core import ConfigError, NpmProgram
from orchard_core.harness.inside.npm import NpmTree

SMALL = ("is-number@7.0.0",)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


@pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm: install Node.js with npm")
async def test_without_a_network_npm_s_own_words_are_told(
    monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:9/")
    monkeypatch.setenv("npm_config_fetch_retries", "0")
    monkeypatch.setenv("npm_config_cache", str(cache / "npm"))
    with pytest.raises(ConfigError, match="ECONNREFUSED") as caught:
        await NpmTree(packages=SMALL).path()
    assert "npm ping" in caught.value.hint


async def test_a_cache_that_cannot_be_written_is_told(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (cache / "orchard").write_text("a file in its way")
    with pytest.raises(ConfigError, match="cannot be made: ") as caught:
        await NpmTree(packages=SMALL).path()
    assert "XDG_CACHE_HOME" in caught.value.hint


async def test_a_whole_tree_in_a_cache_that_cannot_be_written_is_taken(cache: Path) -> None:
    tree = NpmTree(packages=SMALL).place
    tree.mkdir(parents=True)
    tree.parent.chmod(0o555)
    assert await NpmTree(packages=SMALL).path() == tree


@pytest.mark.slow
async def test_what_a_killed_installation_left_is_no_hindrance(cache: Path) -> None:
    half = NpmTree(packages=SMALL).place.with_name("is-number@7.0.0.unfinished")
    (half / "node_modules/is-number").mkdir(parents=True)
    (half / "node_modules/is-number/package.json").write_text('{"name": "is-number", "version": "7.0')
    try:
        tree = await NpmTree(packages=SMALL).path()
    except ConfigError as error:
        pytest.skip(f"needs npm and a registry that it reaches: {error}")
    assert (tree / "node_modules/is-number/index.js").is_file()
    assert not half.exists()


@pytest.mark.parametrize("told", ["v18.20.4", "v9.1.0", "nonsense", ""])
async def test_an_older_node_is_refused_before_anything_is_fetched(
    told: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cache / "node").write_text(f"#!/bin/sh\necho {told}\n")
    (cache / "node").chmod(0o755)
    monkeypatch.setenv("PATH", str(cache), prepend=":")
    with pytest.raises(ConfigError, match="is too old") as caught:
        await NpmProgram(packages=SMALL, path="index.js", node="node").mounts()
    assert "Node.js 20" in caught.value.hint
    assert not (cache / "orchard").exists()
