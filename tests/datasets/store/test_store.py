"""A dataset on the disk: what is written comes back, wherever its writer died."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchard_core import (
    AnswerSpan,
    Attribution,
    DatasetExists,
    DatasetLocked,
    DatasetRow,
    DatasetWriter,
    FormatUnsupported,
    Made,
    Outcome,
    RecordedTokens,
    SampleLabel,
    ShardLimits,
    SourceReport,
    VersionSpan,
    open_dataset,
)
from orchard_core.datasets.store.facts import facts_of
from tests.datasets.making import make_row

SMALL = ShardLimits(group_rows=3, shard_rows=6)


def write(
    out: Path, rows: list[DatasetRow], *, limits: ShardLimits = SMALL, made: Made | None = None
) -> None:
    with DatasetWriter(out, limits=limits) as writer:
        for row in rows:
            writer.write(row)
        writer.finish(made)


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
counts = st.integers(0, 2**40)
floats = st.floats(allow_nan=False)
small = st.integers(0, 2**31 - 1)


@st.composite
def tokens(draw: st.DrawFn) -> RecordedTokens:
    size = draw(st.integers(0, 5))
    return RecordedTokens(
        token_ids=draw(st.tuples(*[small] * size)),
        mask=draw(st.tuples(*[st.integers(0, 1)] * size)),
        logprobs=draw(st.tuples(*[floats] * size)),
        versions=tuple(
            draw(st.lists(st.builds(VersionSpan, start=small, stop=small, version=text), max_size=2))
        ),
        answers=tuple(
            draw(st.lists(st.builds(AnswerSpan, message=small, start=small, stop=small), max_size=2))
        ),
    )


finite = st.floats(allow_nan=False, allow_infinity=False)
names = st.dictionaries(text, st.none() | text | finite | st.lists(text, max_size=2), max_size=2)
rows = st.builds(
    DatasetRow,
    id=text, rollout=text, label=st.sampled_from(SampleLabel), messages=text, tools=text,
    mask=st.lists(st.integers(0, 1), max_size=4).map(tuple), weights=st.lists(floats, max_size=2).map(tuple),
    values=st.lists(floats, max_size=2).map(tuple), credit=text, tokens=st.none() | tokens(),
    token_count=counts,
    token_count_exact=st.booleans(), turns=counts, harness=text, model=text, taskset=text, task=text,
    task_text=text, tags=st.lists(text, max_size=3).map(tuple), attempt=counts, seed=counts,
    outcome=st.none() | st.sampled_from(Outcome), attribution=st.none() | st.sampled_from(Attribution),
    reward=st.none() | floats, split=st.sampled_from(["", "train", "test", "held_out"]), source=text,
    provenance=names, metadata=names,
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(written=st.lists(rows, max_size=8))
def test_what_is_written_comes_back_field_by_field(
    tmp_path_factory: pytest.TempPathFactory, written: list[DatasetRow]
) -> None:
    out = tmp_path_factory.mktemp("dataset")
    write(out, written)
    dataset = open_dataset(out)
    for split in dataset.splits:
        mine = [row for row in written if (row.split or "train") == split]
        assert list(dataset.rows(split)) == mine
    read = list(dataset)
    assert len(read) == len(dataset) == len(written)
    assert [dataset.row(place) for place in range(len(read))] == read
    assert list(dataset.facts()) == [facts_of(row) for row in read]


def test_a_row_that_is_not_there_is_an_index_error(tmp_path: Path) -> None:
    write(tmp_path / "out", [make_row()])
    with pytest.raises(IndexError, match="row 1 of a dataset of 1"):
        open_dataset(tmp_path / "out").row(1)


def test_a_dataset_without_rows_is_one(tmp_path: Path) -> None:
    write(tmp_path / "out", [])
    dataset = open_dataset(tmp_path / "out")
    assert (list(dataset), len(dataset), dataset.splits) == ([], 0, ("train",))


def test_shards_and_row_groups_are_cut_where_the_limits_say(tmp_path: Path) -> None:
    write(tmp_path / "out", [make_row(number) for number in range(14)])
    dataset = open_dataset(tmp_path / "out")
    assert [shard.rows for shard in dataset.manifest.shards] == [6, 6, 2]
    assert [table.num_rows for table in dataset.tables()] == [3, 3, 3, 3, 2]
    assert [table.column_names for table in dataset.tables(columns=["id"])] == [["id"]] * 5


def test_a_row_group_is_cut_by_its_bytes_too(tmp_path: Path) -> None:
    rows = [make_row(number, messages="x" * 1000) for number in range(6)]
    write(tmp_path / "out", rows, limits=ShardLimits(group_bytes=3000))
    assert [table.num_rows for table in open_dataset(tmp_path / "out").tables()] == [2, 2, 2]


def test_the_manifest_tells_what_it_is_made_of_and_the_hash_of_each_file(tmp_path: Path) -> None:
    made = Made(
        by="a test", seed=7, sources=(SourceReport(name="one", read=9, kept=8, dropped={"length": 1}),)
    )
    write(tmp_path / "out", [make_row(n, split="test" if n < 2 else "train") for n in range(8)], made=made)
    manifest = open_dataset(tmp_path / "out").manifest
    assert manifest.made == made
    assert {name: totals.rows for name, totals in manifest.splits.items()} == {"test": 2, "train": 6}
    assert sum(totals.trained_turns for totals in manifest.splits.values()) == 8
    for shard in manifest.shards:
        data = (tmp_path / "out" / shard.file).read_bytes()
        assert (len(data), hashlib.sha256(data).hexdigest()) == (shard.bytes, shard.sha256)


def test_nothing_but_the_dataset_is_left_in_its_directory(tmp_path: Path) -> None:
    write(tmp_path / "out", [make_row(number) for number in range(8)])
    found = sorted(str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*"))
    assert found == [
        "README.md",
        "data",
        "data/train-00000-of-00002.parquet",
        "data/train-00001-of-00002.parquet",
        "manifest.json",
    ]


def test_datasets_loads_the_directory_with_its_splits(tmp_path: Path) -> None:
    write(
        tmp_path / "out",
        [make_row(n, recorded=n == 1, split="no" if n < 2 else "train") for n in range(8)],
    )
    program = (
        "import datasets, json, sys\n"
        "found = datasets.load_dataset(sys.argv[1], cache_dir=sys.argv[2])\n"
        "print(json.dumps({name: list(split['id']) for name, split in found.items()}))\n"
        "print(json.dumps(found['no'][1]['tokens']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "out"), str(tmp_path / "cache")],
        env={
            **os.environ,
            "HF_HUB_OFFLINE": "1",
            "HF_DATASETS_OFFLINE": "1",
            "HF_HOME": str(tmp_path / "home"),
        },
        capture_output=True,
        check=True,
        text=True,
    )
    ids, held = map(json.loads, done.stdout.splitlines())
    assert ids == {"no": ["row0", "row1"], "train": [f"row{n}" for n in range(2, 8)]}
    assert held["token_ids"] == [1, 2, 150_000, 4]


# What is there already


def test_a_dataset_is_never_written_over(tmp_path: Path) -> None:
    write(tmp_path / "out", [make_row()])
    before = snapshot(tmp_path)
    for resume in (False, True):
        with pytest.raises(DatasetExists, match="holds a dataset already"):
            DatasetWriter(tmp_path / "out", resume=resume)
    assert snapshot(tmp_path) == before


def test_a_directory_with_other_things_and_a_file_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("x")
    (tmp_path / "file").write_text("x")
    before = snapshot(tmp_path)
    with pytest.raises(DatasetExists, match="is not empty"):
        DatasetWriter(tmp_path / "full")
    with pytest.raises(DatasetExists, match="is a file"):
        DatasetWriter(tmp_path / "file")
    assert snapshot(tmp_path) == before


def snapshot(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", [".partial", "data"])
def test_a_link_in_the_directory_is_not_followed(tmp_path: Path, name: str) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/keep").write_text("mine")
    (tmp_path / "out/.partial").mkdir(parents=True)
    if name == ".partial":
        (tmp_path / "out/.partial").rmdir()
    (tmp_path / "out" / name).symlink_to("../theirs")
    with pytest.raises(DatasetExists, match="is a link, and is not followed"):
        DatasetWriter(tmp_path / "out")
    assert [path.name for path in (tmp_path / "theirs").iterdir()] == ["keep"]


def test_only_one_writer_works_in_a_directory(tmp_path: Path) -> None:
    with DatasetWriter(tmp_path / "out") as writer:
        with pytest.raises(DatasetLocked, match="being written"):
            DatasetWriter(tmp_path / "out", resume=True)
        writer.write(make_row())
        writer.finish()
    assert len(open_dataset(tmp_path / "out")) == 1


def test_splits_stand_in_the_same_order_however_they_came(tmp_path: Path) -> None:
    write(tmp_path / "out", [make_row(n, split=split) for n, split in enumerate(("test", "dev", "train"))])
    assert open_dataset(tmp_path / "out").splits == ("train", "dev", "test")


# What does not fit


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("task_text", "\ud800"),
        ("seed", 1 << 70),
        ("mask", (300, 0)),
        ("mask", (0.5, 0)),
        ("tokens", RecordedTokens(token_ids=(1 << 40,), mask=(0,), logprobs=(0.0,))),
        ("tags", ("a", 7)),
        ("metadata", {"share": float("inf")}),
    ],
)
def test_a_value_that_a_column_cannot_hold_is_refused_by_row_and_field(
    tmp_path: Path, field: str, value: object
) -> None:
    odd = make_row(1).model_copy(update={field: value})
    with pytest.raises(FormatUnsupported, match=f"'row1', field {field}"):
        write(tmp_path / "out", [make_row(0), odd])
    assert not (tmp_path / "out").exists()


def test_a_split_whose_name_could_be_a_path_is_refused(tmp_path: Path) -> None:
    with (
        DatasetWriter(tmp_path / "out") as writer,
        pytest.raises(FormatUnsupported, match="cannot name a split"),
    ):
        writer.write(make_row(split="../../train"))


def test_a_row_that_is_too_large_is_refused_and_names_what_is_large(tmp_path: Path) -> None:
    with (
        DatasetWriter(tmp_path / "out", limits=ShardLimits(row_bytes=10_000)) as writer,
        pytest.raises(FormatUnsupported, match="field messages: the row takes"),
    ):
        writer.write(make_row(messages="x" * 10_000))


def test_a_field_of_100_mb_is_written_and_read(tmp_path: Path) -> None:
    large = make_row(
        1, messages=json.dumps([{"role": "user", "content": "é" * 50_000_000}], ensure_ascii=False)
    )
    write(tmp_path / "out", [make_row(0), large, make_row(2)], limits=ShardLimits())
    dataset = open_dataset(tmp_path / "out")
    assert dataset.row(1).messages == large.messages
    assert [row.id for row in dataset.facts()] == ["row0", "row1", "row2"]
