"""Rows from whatever a path holds, and a clear word where it holds none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from orchard_core import (
    ConfigError,
    DatasetCorrupt,
    DatasetNotFound,
    Dialect,
    FormatUnknown,
    RecordCorrupt,
    Rollout,
    RunNotFound,
    SampleLabel,
    UnknownPlugin,
    open_dataset,
    open_run,
    read_rows,
    rollout_rows,
)
from orchard_core.datasets.reading import SourceKind, find_source
from orchard_core.rollout.matrix.plan import MatrixPart, MatrixPlan, MatrixShared, cell_directory, write_plan
from orchard_core.rollout.store.files import DiskFiles
from orchard_core.rollout.store.writer import RunWriter
from tests.rollout.making import make_config, make_planned

from .making import Recorded, make_row, rollout_of
from .store.forging import write
from .test_rows import with_title_and_fork


def rollouts(count: int) -> list[Rollout]:
    made = []
    for number in range(count):
        talk = Recorded(Dialect.CHAT)
        talk.call([{"role": "user", "content": f"Go {number}."}], {"role": "assistant", "content": "Done."})
        made.append(talk.rollout(task=f"t{number}"))
    return made


async def begin(root: Path, *, planned: int) -> RunWriter:
    writer = await RunWriter.open(root, make_config(), resume=False)
    await writer.plan([make_planned(f"t{number}") for number in range(planned)])
    return writer


async def make_run(root: Path, done: list[Rollout]) -> Path:
    async with await begin(root, planned=len(done)) as writer:
        for rollout in done:
            await writer.finish(rollout)
    return root


async def test_a_run_gives_the_rows_of_its_rollouts_and_its_name(tmp_path: Path) -> None:
    done = rollouts(3)
    run = await make_run(tmp_path / "first", done)
    assert find_source(run).kind is SourceKind.RUN
    assert list(read_rows(run)) == [row for rollout in done for row in rollout_rows(rollout, run="first")]


async def test_a_run_that_is_being_written_gives_what_is_finished(tmp_path: Path) -> None:
    one, other = rollouts(2)
    async with await begin(tmp_path / "run", planned=2) as writer:
        assert list(read_rows(tmp_path / "run")) == []
        await writer.finish(one)
        assert [row.rollout for row in read_rows(tmp_path / "run")] == [one.id]
        await writer.finish(other)
        assert [row.rollout for row in read_rows(tmp_path / "run")] == [one.id, other.id]


async def test_which_conversations_become_rows_can_be_said(tmp_path: Path) -> None:
    run = await make_run(tmp_path / "run", [rollout_of(with_title_and_fork(), task="t0")])
    for labels in ({SampleLabel.MAIN}, {SampleLabel.SIDE}, set(SampleLabel)):
        assert {row.label for row in read_rows(run, threads=frozenset(labels))} == labels


async def test_a_matrix_gives_the_rows_of_all_its_cells_that_were_started(tmp_path: Path) -> None:
    part = MatrixPart(name="x")
    plan = MatrixPlan.product(
        harnesses=[MatrixPart(name=name) for name in ("a", "b", "c")],
        models=[part],
        tasksets=[part],
        shared=MatrixShared(),
        created_at=0.0,
    )
    (tmp_path / "m").mkdir()
    write_plan(DiskFiles(), tmp_path / "m", plan)
    for cell in plan.cells[:2]:
        await make_run(cell_directory(tmp_path / "m", cell.key), rollouts(2))
    assert find_source(tmp_path / "m").kind is SourceKind.MATRIX
    runs = [row.provenance["run"] for row in read_rows(tmp_path / "m")]
    assert runs == [cell.key.slug for cell in plan.cells[:2] for _ in range(2)]


async def test_a_damaged_rollout_is_told_and_those_before_it_are_given(tmp_path: Path) -> None:
    run = await make_run(tmp_path / "run", rollouts(3))
    entry = open_run(run).finished()[2]
    shard = run / "shards" / f"{entry.shard:05d}.jsonl.zst"
    data = bytearray(shard.read_bytes())
    data[entry.offset + entry.length // 2] ^= 0xFF
    shard.write_bytes(data)
    found = read_rows(run)
    assert [next(found).task, next(found).task] == ["t0", "t1"]
    with pytest.raises(RecordCorrupt, match="checksum does not match"):
        next(found)


def test_a_dataset_gives_its_rows_as_they_are(tmp_path: Path) -> None:
    rows = [make_row(number) for number in range(4)]
    root = write(tmp_path / "out", rows)
    assert find_source(root).kind is SourceKind.DATASET
    assert list(read_rows(root)) == rows


def test_of_a_directory_of_datasets_the_message_names_one(tmp_path: Path) -> None:
    for name in ("two", "one"):
        write(tmp_path / "sets" / name, [make_row(1)])
    with pytest.raises(FormatUnknown) as caught:
        find_source(tmp_path / "sets")
    assert caught.value.hint == f"name what lies in it, as in {tmp_path}/sets/one"
    with pytest.raises(RunNotFound, match="is a dataset, not a run"):
        open_run(tmp_path / "sets" / "one")


def test_a_file_of_a_known_format_is_recognised_and_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"messages": [{"role": "assistant", "content": "x"}]}) + "\n")
    source = find_source(path)
    assert (source.kind, source.format) == (SourceKind.FORMAT, "hf")
    assert [row.turns for row in read_rows(path)] == [1]
    assert list(read_rows(path, format="hf")) == list(read_rows(path))


def test_what_nothing_recognises_is_told_with_what_was_looked_for_and_the_formats(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    for path in (tmp_path, tmp_path / "notes.txt"):
        with pytest.raises(
            FormatUnknown, match=r"run\.json of a run, matrix\.json .*, manifest\.json"
        ) as caught:
            read_rows(path)
        assert "atif" in caught.value.hint


def test_where_nothing_is_and_what_no_format_is_called_are_told(tmp_path: Path) -> None:
    with pytest.raises(DatasetNotFound, match="there is nothing at"):
        read_rows(tmp_path / "none")
    with pytest.raises(UnknownPlugin, match="atfi"):
        read_rows(tmp_path, format="atfi")


def test_nobody_waits_at_a_pipe_for_rows(tmp_path: Path) -> None:
    for name in ("rows.jsonl", "run.traj.json", "trajectory.json"):
        os.mkfifo(tmp_path / name)
        with pytest.raises(FormatUnknown, match="is a pipe or a device"):
            read_rows(tmp_path / name, format="hf")
    for format_name in ("miniswe", "atif"):
        with pytest.raises(DatasetCorrupt, match="a pipe or a device, and no file"):
            list(read_rows(tmp_path, format=format_name))
    assert list(read_rows(tmp_path, format="hf")) == []


def test_a_dataset_that_was_not_written_to_its_end_says_how_to_go_on(tmp_path: Path) -> None:
    (tmp_path / "out" / ".partial").mkdir(parents=True)
    with pytest.raises(DatasetNotFound, match="run the command that wrote it again"):
        read_rows(tmp_path / "out")


def test_a_manifest_that_is_cut_is_told_and_no_format_is_tried(tmp_path: Path) -> None:
    root = write(tmp_path / "out", [make_row()])
    (root / "manifest.json").write_text("{")
    with pytest.raises(DatasetCorrupt, match="cut short"):
        read_rows(root)


def test_a_split_that_is_not_there_is_told_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no split 'test'") as caught:
        list(open_dataset(write(tmp_path / "out", [make_row()])).rows("test"))
    assert caught.value.hint == "it has: train"


WITHOUT = "import sys; sys.modules['pyarrow'] = None\n"
"""As where the extra `data` is not installed."""


async def test_without_the_extra_runs_are_read_and_datasets_say_what_to_install(tmp_path: Path) -> None:
    run = await make_run(tmp_path / "run", rollouts(2))
    root = write(tmp_path / "out", [make_row()])
    program = f"{WITHOUT}from orchard_core import read_rows\nprint(len(list(read_rows({str(run)!r}))))\n"
    read = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert read.stdout == "2\n"
    for name, path in (("read_rows", root), ("open_dataset", root), ("DatasetWriter", tmp_path / "x")):
        program = f"{WITHOUT}from orchard_core import {name}\n{name}({str(path)!r})"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert "ConfigError" in done.stderr
        assert "pip install 'orchard-core[data]'" in done.stderr
