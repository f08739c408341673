"""A mix that is killed at any moment goes on by the same command, to the same bytes."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchard_core.cli.exits import Exit
from orchard_core.datasets.mix.directory import WORK, mix_directory
from orchard_core.datasets.mix.outcome import resolved
from orchard_core.datasets.mix.run import mix, with_names
from orchard_core.errors import ConfigError, DatasetError, DatasetExists, DatasetLocked
from tests.cli.conftest import ARGV, environment
from tests.datasets.mix.making import files, ids, line, plain_source, recipe, source, talk

LONG = "x" * 20_000


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sources of some 40 MB, so that a mix takes its time."""
    root = tmp_path_factory.mktemp("sources")
    for name in ("one", "other"):
        source(root / f"{name}.jsonl", (line(f"{name}-{n}", talk(f"{name} {n} {LONG}")) for n in range(1000)))
    return root


@pytest.fixture(scope="module")
def unbroken(sources: Path) -> dict[str, str]:
    """What a mix that nobody stops writes."""
    started(sources, "unbroken").wait()
    return files(sources / "unbroken")


def started(sources: Path, out: str, workers: int = 2) -> subprocess.Popen[bytes]:
    """The command, in a process group of its own."""
    asked = ["one.jsonl", "other.jsonl", "--weight", "one=2", "--shard-rows", "100"]
    asked += ["--workers", str(workers)]
    return subprocess.Popen(
        [*ARGV, "data", "mix", *asked, "--out", out], cwd=sources, env=environment(), start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip


def moments(seed: int) -> Iterator[float]:
    """Seconds until the next kill, more each time, so that it comes to an end."""
    draw, most = random.Random(seed), 0.5
    while True:
        yield 0.1 + draw.random() * most
        most += 0.5


def begun(out: Path) -> bool:
    """The mix has something to lose."""
    return any(out.glob(f"{WORK}/source-*.sqlite"))


def whole(out: Path) -> bool:
    """The dataset is there; a kill may come so late that the command has nothing left to do."""
    left = (out / WORK).exists() or any((out / f"{WORK}-done").glob("*"))
    return (out / "manifest.json").exists() and not left


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "workers"), [(1, 1), (2, 2), (3, 2)])
def test_killed_again_and_again_it_writes_the_same_bytes(
    sources: Path, unbroken: dict[str, str], seed: int, workers: int
) -> None:
    out, kills = f"killed-{seed}", 0
    for pause in moments(seed):
        process = started(sources, out, workers)
        while not begun(sources / out) and process.poll() is None:
            time.sleep(0.01)
        try:
            process.wait(timeout=pause)
        except subprocess.TimeoutExpired:
            process.kill()  # the driver alone: its workers are to die with it
            process.wait()
            kills += 1
        assert process.returncode in {0, -signal.SIGKILL}, process.stderr and process.stderr.read()
        if whole(sources / out):
            break
    assert kills >= 1
    assert files(sources / out) == unbroken


@pytest.mark.slow
def test_interrupted_it_says_how_to_go_on_and_goes_on(sources: Path, unbroken: dict[str, str]) -> None:
    process = started(sources, "interrupted")
    while not begun(sources / "interrupted") and process.poll() is None:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == Exit.INTERRUPTED
    assert b"the same command goes on" in said
    assert started(sources, "interrupted").wait() == 0
    assert files(sources / "interrupted") == unbroken


def broken_off(tmp_path: Path) -> Path:
    """A mix that stopped after its first source: the second one is too large for the file limit."""
    plain_source(tmp_path / "one.jsonl", 5)
    source(tmp_path / "two.jsonl", [line("b", talk(LONG * 10))])
    done = limited(tmp_path, 120_000)
    assert done.returncode == Exit.FAILED, done.stderr
    assert (tmp_path / "out" / WORK).is_dir()
    return tmp_path / "out"


def limited(where: Path, most: int) -> subprocess.CompletedProcess[str]:
    """The command, with files of so many bytes at most."""
    script = f'ulimit -f {most // 1024}; exec "$@"'
    return subprocess.run(
        ["bash", "-c", script, "bash", *ARGV, "data", "mix", "one.jsonl", "two.jsonl", "--out", "out"],
        cwd=where, env=environment(PYTHONDONTWRITEBYTECODE="1"), capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_a_full_disk_stops_it_and_room_lets_it_go_on(tmp_path: Path) -> None:
    out = broken_off(tmp_path)
    done = limited(tmp_path, 1 << 30)
    assert done.returncode == Exit.OK, done.stderr
    assert len(ids(out)) == 6


def test_a_source_that_changed_meanwhile_is_refused_by_name(tmp_path: Path) -> None:
    out = broken_off(tmp_path)
    plain_source(tmp_path / "one.jsonl", 6)
    done = limited(tmp_path, 1 << 30)
    assert done.returncode == Exit.FAILED
    assert "one.jsonl was changed since this mix began" in done.stderr
    assert f"remove {out / WORK}" in done.stderr
    assert not (out / "manifest.json").exists()


def test_another_recipe_is_not_written_into_an_unfinished_mix(tmp_path: Path) -> None:
    out = broken_off(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    with pytest.raises(DatasetExists, match="an unfinished mix of another recipe"):
        mix(recipe(tmp_path / "one.jsonl", seed=9), out)
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*")}.keys() == before.keys()


def test_one_that_was_killed_at_its_very_end_is_whole(tmp_path: Path) -> None:
    path = plain_source(tmp_path / "a.jsonl", 4)
    asked = recipe(path)
    mix(asked, tmp_path / "out")
    before = files(tmp_path / "out")
    (tmp_path / "out" / WORK).mkdir()
    (tmp_path / "out" / WORK / "recipe.json").write_bytes(resolved(with_names(asked)))
    assert mix(asked, tmp_path / "out").rows == 4
    assert files(tmp_path / "out") == before
    (tmp_path / "out" / f"{WORK}-done").mkdir()  # killed between its last two steps
    with pytest.raises(DatasetExists, match="holds a dataset already"):
        mix(asked, tmp_path / "out")
    assert files(tmp_path / "out") == before


@pytest.mark.parametrize(
    "left", [("recipe.json",), ("recipe.json", "lock"), ("recipe.json", "lock", "source-0.rows")]
)
def test_one_that_was_killed_while_it_cleared_up_is_whole(tmp_path: Path, left: tuple[str, ...]) -> None:
    asked = recipe(plain_source(tmp_path / "a.jsonl", 4))
    mix(asked, tmp_path / "out")
    before = files(tmp_path / "out")
    (tmp_path / "out" / f"{WORK}-done").mkdir()
    for name in left:
        (tmp_path / "out" / f"{WORK}-done" / name).write_bytes(resolved(with_names(asked)))
    assert mix(asked, tmp_path / "out").rows == 4
    assert files(tmp_path / "out") == before


def test_what_another_recipe_left_at_its_end_is_removed_and_the_dataset_kept(tmp_path: Path) -> None:
    asked = recipe(plain_source(tmp_path / "a.jsonl", 4))
    mix(asked, tmp_path / "out")
    before = files(tmp_path / "out")
    (tmp_path / "out" / f"{WORK}-done").mkdir()
    (tmp_path / "out" / f"{WORK}-done" / "recipe.json").write_text("another")
    with pytest.raises(DatasetExists, match="holds a dataset already"):
        mix(asked, tmp_path / "out")
    assert files(tmp_path / "out") == before


def test_a_directory_that_is_being_written_is_locked(tmp_path: Path) -> None:
    asked = recipe(plain_source(tmp_path / "a.jsonl", 4))
    with (
        mix_directory(tmp_path / "out", resolved(with_names(asked))),
        pytest.raises(DatasetLocked, match=str(os.getpid())),
    ):
        mix(asked, tmp_path / "out")
    assert mix(asked, tmp_path / "out").rows == 4


@pytest.mark.parametrize("there", ["file", "directory", "dataset"])
def test_what_lies_there_already_is_not_touched(tmp_path: Path, there: str) -> None:
    asked, out = recipe(plain_source(tmp_path / "a.jsonl", 4)), tmp_path / "out"
    if there == "file":
        out.write_text("mine")
    elif there == "directory":
        (out / "notes").mkdir(parents=True)
    else:
        mix(asked, out)
    before = {path: path.read_bytes() for path in [out, *out.rglob("*")] if path.is_file()}
    with pytest.raises(DatasetExists):
        mix(asked, out)
    assert {path: path.read_bytes() for path in [out, *out.rglob("*")] if path.is_file()} == before


@pytest.mark.parametrize("name", [WORK, f"{WORK}-done", ".partial"])
def test_a_link_where_it_would_work_is_not_followed(tmp_path: Path, name: str) -> None:
    source = plain_source(tmp_path / "a.jsonl", 2)
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/keep").write_text("mine")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).symlink_to("../theirs")
    with pytest.raises(DatasetExists, match="is a link, and is not followed"):
        mix(recipe(source), tmp_path / "out")
    assert [path.name for path in (tmp_path / "theirs").iterdir()] == ["keep"]


def test_a_link_to_nothing_is_no_place_for_a_dataset(tmp_path: Path) -> None:
    source = plain_source(tmp_path / "a.jsonl", 2)
    (tmp_path / "out").symlink_to("nowhere")
    with pytest.raises(DatasetExists, match="is a link to nothing"):
        mix(recipe(source), tmp_path / "out")


def test_a_mix_inside_of_its_source_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    plain_source(tmp_path / "in/a.jsonl", 2)
    (tmp_path / "link").symlink_to("in")
    for out in (tmp_path / "in/out", tmp_path / "link/out"):
        with pytest.raises(ConfigError, match="lies inside of"):
            mix(recipe(tmp_path / "in"), out)
    assert [path.name for path in (tmp_path / "in").iterdir()] == ["a.jsonl"]


def test_rows_that_differ_although_no_file_says_so_are_noticed(tmp_path: Path) -> None:
    """A source's rows are its own word: what was read is passed over only when it comes again."""
    from orchard_core.datasets.mix.scan import Scan, scan

    path = source(tmp_path / "a.jsonl", [line("a"), line("b"), line("c")])
    asked = with_names(recipe(path))
    (tmp_path / "work").mkdir()
    job = Scan(number=0, source=asked.sources[0], recipe=asked, work=tmp_path / "work")
    scan(job)
    told = path.stat()
    path.write_text(path.read_text().replace("Mend b", "Bend b"))
    os.utime(path, ns=(told.st_atime_ns, told.st_mtime_ns))
    undone(job.index)
    with pytest.raises(DatasetError, match="gives other rows than when this mix began"):
        scan(job)


def undone(index: Path) -> None:
    """As if it had been killed after its last chunk."""
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(index)) as base, base:
        base.execute("UPDATE state SET done = 0")


def test_after_the_machine_was_started_anew_a_source_is_read_anew(tmp_path: Path) -> None:
    """Rows that wait for their shards are not synced: of another start of the machine none is trusted."""
    import sqlite3
    from contextlib import closing

    from orchard_core.datasets.mix.scan import Scan, scan

    asked = with_names(recipe(source(tmp_path / "a.jsonl", [line("a"), line("b")])))
    (tmp_path / "work").mkdir()
    job = Scan(number=0, source=asked.sources[0], recipe=asked, work=tmp_path / "work")
    before = scan(job)
    whole = job.spool.read_bytes()
    job.spool.write_bytes(bytes(len(whole)))
    with closing(sqlite3.connect(job.index)) as base, base:
        base.execute("UPDATE state SET boot = 'another'")
    assert scan(job) == before
    assert job.spool.read_bytes() == whole
