"""Cut, changed, foreign and newer datasets: told by file, row and field, and never read as data."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from orchard_core import DatasetCorrupt, DatasetNotFound, DatasetRow, open_dataset
from orchard_core.datasets.verify import Verifier
from tests.datasets.making import make_row

from .forging import edit_manifest, forge, not_utf8, put, write

ROWS = [make_row(number, recorded=number == 4) for number in range(8)]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write(tmp_path / "out", ROWS)


def shard_of(root: Path) -> Path:
    return next((root / "data").glob("*.parquet"))


def read(root: Path) -> tuple[list[DatasetRow], DatasetCorrupt | None]:
    """What is read before the fault, and the fault."""
    found: list[DatasetRow] = []
    try:
        found += open_dataset(root)
    except DatasetCorrupt as error:
        return found, error
    return found, None


def test_a_manifest_that_is_cut_at_any_byte_is_told_and_left_as_it_is(root: Path) -> None:
    path = root / "manifest.json"
    whole = path.read_bytes()
    for size in range(len(whole.rstrip())):
        path.write_bytes(whole[:size])
        with pytest.raises(DatasetCorrupt, match="cut short") as caught:
            open_dataset(root)
        assert caught.value.path == str(path)
        assert path.read_bytes() == whole[:size]


def test_a_shard_that_is_cut_anywhere_is_told_by_its_size(root: Path) -> None:
    path = shard_of(root)
    whole = path.read_bytes()
    for size in {
        0,
        1,
        3,
        4,
        5,
        8,
        len(whole) // 2,
        *range(len(whole) - 12, len(whole)),
        *range(0, len(whole), 997),
    }:
        path.write_bytes(whole[:size])
        found, error = read(root)
        assert not found
        assert error is not None
        assert error.path == str(path)
        assert "cut short" in error.message


def test_a_cut_shard_whose_manifest_agrees_is_told_too(root: Path) -> None:
    path = shard_of(root)
    whole = path.read_bytes()
    for size in range(0, len(whole), 997):
        path.write_bytes(whole[:size])
        edit_manifest(root, lambda fields, size=size: fields["shards"][0].update(bytes=size))  # type: ignore[misc]
        found, error = read(root)
        assert not found
        assert error is not None
        assert "no Parquet file, or a damaged one" in error.message


def test_a_flipped_byte_is_told_or_changes_nothing_and_rows_before_it_are_given(root: Path) -> None:
    path = shard_of(root)
    whole = path.read_bytes()
    told = 0
    for place in range(0, len(whole), 61):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x41]) + whole[place + 1 :])
        found, error = read(root)
        assert found == ROWS[: len(found)]
        assert error is not None or len(found) == len(ROWS)
        told += error is not None
    assert told > 100


def test_a_damaged_page_is_told_by_row_and_column(root: Path) -> None:
    path = shard_of(root)
    chunk = pq.ParquetFile(path).metadata.row_group(1).column(1)
    assert chunk.path_in_schema == "messages"
    data = bytearray(path.read_bytes())
    data[chunk.data_page_offset + chunk.total_compressed_size - 3] ^= 0xFF
    path.write_bytes(data)
    found, error = read(root)
    assert found == ROWS[:3]
    assert error is not None
    assert (error.path, error.row, error.field) == (str(path), 3, "messages")
    assert "rows from here to 5 cannot be read" in error.message


@pytest.mark.parametrize("name", ["messages", "id", "task_text", "provenance"])
def test_text_that_is_not_utf8_is_told_by_row_and_field(root: Path, name: str) -> None:
    path = forge(root, not_utf8(name, 5))
    found, error = read(root)
    assert found == ROWS[:5]
    assert error is not None
    assert (error.path, error.row, error.field) == (str(path), 5, name)
    assert "is not UTF-8" in error.message


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("outcome", "glorious", "'glorious' is none of: completed, truncated"),
        ("label", "mainly", "is none of: main, fork, side"),
        ("provenance", "[1]", "the JSON is no object"),
        ("metadata", "{", "is not JSON"),
        ("id", None, "there is no value"),
        ("token_count", None, "there is no value"),
        ("mask", [1, None], "a number is missing"),
    ],
)
def test_a_value_that_cannot_be_is_told_by_row_and_field(
    root: Path, name: str, value: Any, words: str
) -> None:
    if value is None:
        forge(root, lambda table: nullable(table, name))
    path = forge(root, put(name, 4, value))
    found, error = read(root)
    assert found == ROWS[:4]
    assert error is not None
    assert (error.path, error.row, error.field) == (str(path), 4, name)
    assert words in error.message


def nullable(table: Any, name: str) -> Any:
    at = table.schema.get_field_index(name)
    return table.set_column(at, table.schema.field(at).with_nullable(True), table.column(name))


def test_a_missing_a_further_and_a_mistyped_column_are_told_by_name(tmp_path: Path) -> None:
    changes: dict[str, tuple[Any, str]] = {
        "messages": (lambda table: table.drop_columns(["messages"]), "there is nothing"),
        "extra": (lambda table: table.append_column("extra", pa.array([1] * 8)), "no such column"),
        "turns": (
            lambda table: table.set_column(
                table.schema.get_field_index("turns"), "turns", table.column("turns").cast(pa.int32())
            ),
            "there must be int64 here, and there is int32",
        ),
    }
    for name, (change, words) in changes.items():
        root = write(tmp_path / name, ROWS)
        path = forge(root, change)
        _, error = read(root)
        assert error is not None
        assert (error.path, error.field) == (str(path), name)
        assert words in error.message


def test_a_shard_of_another_project_and_one_of_a_newer_orchard_are_told(tmp_path: Path) -> None:
    foreign = write(tmp_path / "foreign", ROWS)
    forge(foreign, lambda table: table.replace_schema_metadata({}))
    with pytest.raises(DatasetCorrupt, match="was not written by Orchard"):
        list(open_dataset(foreign))
    newer = write(tmp_path / "newer", ROWS)
    forge(newer, lambda table: table.replace_schema_metadata({"orchard.dataset_version": "2"}))
    with pytest.raises(DatasetCorrupt, match=re.escape("newer Orchard (version 2; this one reads 1)")):
        list(open_dataset(newer))


def test_the_manifest_of_a_newer_orchard_is_told_before_its_fields_are_looked_at(root: Path) -> None:
    edit_manifest(root, lambda fields: fields.update(schema_version=2, novelty=True))
    with pytest.raises(DatasetCorrupt, match="newer Orchard") as caught:
        open_dataset(root)
    assert (caught.value.field, caught.value.hint) == ("schema_version", "pip install --upgrade orchard-core")


@pytest.mark.parametrize(
    "text", [b"[]", b'{"format": "other"}', b'{"files": []}', b"\xff\xfe", b"[" * 100_000]
)
def test_a_manifest_of_something_else_is_told(root: Path, text: bytes) -> None:
    (root / "manifest.json").write_bytes(text)
    with pytest.raises(DatasetCorrupt, match=r"manifest\.json"):
        open_dataset(root)


@pytest.mark.parametrize(
    "file", ["../secret.parquet", "/etc/passwd", "data/../../x-00000-of-00001.parquet", "data/x.parquet"]
)
def test_a_manifest_cannot_point_out_of_its_directory(root: Path, file: str) -> None:
    edit_manifest(root, lambda fields: fields["shards"][0].update(file=file))
    with pytest.raises(DatasetCorrupt) as caught:
        open_dataset(root)
    assert caught.value.field == "shards.0.file"


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("rows", lambda fields: fields.update(rows=7)),
        ("splits.train.rows", lambda fields: fields["splits"]["train"].update(rows=7)),
        ("splits", lambda fields: fields["shards"][0].update(split="test")),
    ],
)
def test_counts_that_do_not_agree_are_told_by_field(root: Path, field: str, change: Any) -> None:
    if field == "splits":
        edit_manifest(root, lambda fields: fields["splits"]["train"].update(rows=0))
    edit_manifest(root, change)
    with pytest.raises(DatasetCorrupt, match="does not agree") as caught:
        open_dataset(root)
    assert caught.value.field == field


def test_a_shard_with_another_number_of_rows_is_told(root: Path) -> None:
    forge(root, lambda table: table.slice(0, 7))
    with pytest.raises(DatasetCorrupt, match="holds 7 rows, and the manifest says 8"):
        list(open_dataset(root))


def test_a_shard_that_is_gone_is_told(root: Path) -> None:
    shard_of(root).unlink()
    with pytest.raises(DatasetCorrupt, match="No such file"):
        list(open_dataset(root))


def test_a_pipe_in_the_place_of_a_file_is_told_and_nobody_waits_at_it(root: Path) -> None:
    edit_manifest(root, lambda fields: fields["shards"][0].update(bytes=0))
    shard = shard_of(root)
    shard.unlink()
    os.mkfifo(shard)
    with pytest.raises(DatasetCorrupt, match="is no file"):
        list(open_dataset(root))
    verifier = Verifier(root)
    list(verifier.rows())
    assert [fault.message for fault in verifier.report().faults] == ["is no file"]
    (root / "manifest.json").unlink()
    os.mkfifo(root / "manifest.json")
    with pytest.raises(DatasetCorrupt, match="no file"):
        open_dataset(root)


def test_where_nothing_is_there_is_no_dataset(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(DatasetNotFound, match=r"no manifest\.json"):
            open_dataset(path)


def test_single_rows_are_read_with_the_same_care(root: Path) -> None:
    forge(root, not_utf8("messages", 5))
    dataset = open_dataset(root)
    assert dataset.row(4) == ROWS[4]
    with pytest.raises(DatasetCorrupt) as caught:
        dataset.row(5)
    assert (caught.value.row, caught.value.field) == (5, "messages")


def test_the_manifest_is_json_that_people_can_read(root: Path) -> None:
    text = (root / "manifest.json").read_text()
    assert text.startswith('{\n  "format": "orchard-dataset"')
    assert json.loads(text)["splits"] == {"train": {"rows": 8, "tokens": 68, "turns": 8, "trained_turns": 8}}
