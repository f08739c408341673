"""The index of messages: what it finds, that it follows a run, and that losing it loses nothing."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from orchard_core import OrchardError, RewardResult
from orchard_core.viewer.search.finding import Found, Searcher, as_match
from orchard_core.viewer.search.place import index_path
from orchard_core.viewer.search.writing import bring_up_to_date
from orchard_core.viewer.sources.contract import Source
from orchard_core.viewer.sources.shelf import Shelf

from .making import Recorder, answer, finish, make_rollout, tool, worked, write_run

ROOT = Path(__file__).parents[2]


@pytest.fixture
async def source(tmp_path: Path) -> Source:
    recorder = Recorder()
    base = recorder.call(
        [{"role": "user", "content": "Ängström größe"}], answer("first", "grep -rn foo_bar src/")
    )
    recorder.call([tool('say "hello world" AND NOT (x*)')], answer("second zebra"), base=base)
    odd = make_rollout("odd", trajectory=recorder.trajectory())
    run = await write_run(tmp_path / "run", [make_rollout("plain"), odd], planned=1)
    return Shelf.open([run]).sources[0]


def found(source: Source, cache: Path, text: str) -> Found:
    return Searcher(cache).search([source], text)


@pytest.mark.parametrize(
    ("text", "turn"),
    [
        ("zebra", 1),
        ("ZEBRA", 1),
        ("zeb", 1),
        ("foo_bar", 0),
        ("grep src", 0),
        ('"hello world"', 0),
        ('"hello world', 0),
        ("angstrom", 0),
        ("NOT", 0),
        ("second zebra", 1),
    ],
)
def test_words_are_found_in_their_turn(source: Source, tmp_path: Path, text: str, turn: int) -> None:
    bring_up_to_date(source, tmp_path)
    told = found(source, tmp_path, text)
    assert list(told.hits) == ["/1/odd-0"]
    assert told.hits["/1/odd-0"].first == turn
    assert (told.read, told.total) == (2, 2)


@pytest.mark.parametrize(
    "text", ["first zebra", '"world hello"', "zebra*(", '""', "*", "NEAR(", "body:zzz", "\x00", "-"]
)
def test_what_is_not_there_is_not_found_and_nothing_is_an_operator(
    source: Source, tmp_path: Path, text: str
) -> None:
    bring_up_to_date(source, tmp_path)
    assert not {"/1/plain-0"} & set(found(source, tmp_path, text).hits)


def test_every_word_stands_in_quotes() -> None:
    assert as_match('a OR "b c" d"e') == '"a" AND "OR" AND "b c" AND "d""e"*'
    assert as_match("  ") == ""


def test_without_an_index_a_search_says_that_nothing_is_read(source: Source, tmp_path: Path) -> None:
    told = found(source, tmp_path, "zebra")
    assert (told.hits, told.read, told.total) == ({}, 0, 2)


async def test_what_is_new_is_added_and_what_was_read_is_not_read_again(
    source: Source, tmp_path: Path
) -> None:
    assert bring_up_to_date(source, tmp_path) == 2
    assert bring_up_to_date(source, tmp_path) == 0
    await finish(source.root, make_rollout("open-0", id="open-0", trajectory=worked(2)))
    assert bring_up_to_date(source, tmp_path) == 1
    assert "/1/open-0" in found(source, tmp_path, "conversation").hits


async def test_a_rollout_recorded_anew_is_found_by_its_new_words_alone(
    source: Source, tmp_path: Path
) -> None:
    bring_up_to_date(source, tmp_path)
    recorder = Recorder()
    recorder.call([{"role": "user", "content": "go"}], answer("giraffe"))
    again = make_rollout("odd", trajectory=recorder.trajectory(), reward=RewardResult(score=0.0))
    await finish(source.root, again)
    assert bring_up_to_date(source, tmp_path) == 1
    assert not found(source, tmp_path, "zebra").hits
    assert list(found(source, tmp_path, "giraffe").hits) == ["/1/odd-0"]


@pytest.mark.parametrize("damage", [b"", b"not a database at all", b"SQLite format 3\0" + b"\xff" * 4000])
def test_a_damaged_index_is_made_anew(source: Source, tmp_path: Path, damage: bytes) -> None:
    bring_up_to_date(source, tmp_path)
    index_path(source.root, tmp_path).write_bytes(damage)
    assert found(source, tmp_path, "zebra").read in (0, 2)
    bring_up_to_date(source, tmp_path)
    assert found(source, tmp_path, "zebra").hits


def test_a_damaged_record_does_not_end_the_index(source: Source, tmp_path: Path) -> None:
    shard = source.root / "shards" / "00000.jsonl.zst"
    data = bytearray(shard.read_bytes())
    data[200] ^= 0xFF
    shard.write_bytes(data)
    with pytest.raises(OrchardError):
        source.raw(source.lines().lines[0])
    assert bring_up_to_date(source, tmp_path) == 2
    assert found(source, tmp_path, "zebra").hits


def test_nobody_else_may_read_the_index(source: Source, tmp_path: Path) -> None:
    bring_up_to_date(source, tmp_path / "new")
    assert (tmp_path / "new").stat().st_mode & 0o077 == 0
    assert index_path(source.root, tmp_path / "new").stat().st_mode & 0o077 == 0


async def test_the_process_that_makes_the_index_ends_with_the_viewer(source: Source, tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "orchard_core.viewer.search.worker", str(tmp_path / "cache"), str(source.root),
        stdin=asyncio.subprocess.PIPE, cwd=ROOT,
    )  # fmt: skip
    for _ in range(600):
        if found(source, tmp_path / "cache", "zebra").hits:
            break
        await asyncio.sleep(0.1)
    assert found(source, tmp_path / "cache", "zebra").hits
    assert process.stdin is not None
    process.stdin.close()
    assert await asyncio.wait_for(process.wait(), 30) == 0
