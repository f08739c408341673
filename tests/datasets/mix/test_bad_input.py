"""Sources that are broken at every level: an error that names file, row and field, and nothing written."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from orchard_core import MixRefused
from orchard_core.datasets.mix.run import dry_mix, mix
from orchard_core.errors import ConfigError, DatasetCorrupt, DatasetError, DatasetNotFound, FormatUnknown
from tests.datasets.mix.making import TOOLS, dropped, ids, line, plain_source, recipe, source, talk


def refused(tmp_path: Path, path: Path) -> DatasetCorrupt:
    """What a mix of the file says."""
    with pytest.raises(DatasetCorrupt) as caught:
        mix(recipe({"path": str(path), "format": "hf"}), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    return caught.value


def test_a_file_cut_at_any_byte_is_refused_at_its_last_row_or_lacks_whole_rows(tmp_path: Path) -> None:
    whole = "".join(f"{line(name, talk(name))}\n" for name in "abc").encode()
    ends = [place + 1 for place, byte in enumerate(whole) if byte == 0x0A]
    for cut in range(1, len(whole), 37):
        path = tmp_path / f"{cut}.jsonl"
        path.write_bytes(whole[:cut])
        row = sum(end <= cut for end in ends)
        if cut + 1 in ends or cut in ends:
            continue
        error = refused(tmp_path, path)
        assert (error.path, error.row) == (str(path), row), f"cut at {cut}"


def test_text_that_is_not_utf_8_is_refused_at_its_row(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(line("a").encode() + b"\n" + line("b").encode().replace(b"Mend", b"\xff\xfe") + b"\n")
    error = refused(tmp_path, path)
    assert error.row == 1
    assert "UTF-8" in error.message


@pytest.mark.parametrize(
    ("text", "field"),
    [
        (json.dumps({"messages": "no list", "tools": TOOLS}), "messages"),
        (json.dumps({"messages": [{"role": "user", "content": 5}]}), "messages[0].content"),
        (json.dumps({"messages": [{"content": "x"}]}), "messages[0].role"),
        (json.dumps({"messages": talk("x"), "tools": "{"}), "tools"),
        (json.dumps({"other": 1}), "messages"),
        (line("a", mask=[1]), "mask"),
        (line("a", mask=None), "mask"),
        (line("a", schema_version=99), "orchard.schema_version"),
    ],
)
def test_wrong_columns_and_unknown_versions_name_the_field(tmp_path: Path, text: str, field: str) -> None:
    error = refused(tmp_path, source(tmp_path / "a.jsonl", [line("fine"), text]))
    assert (error.row, error.field) == (1, field)


def test_a_field_of_100_mb_is_refused_by_name(tmp_path: Path) -> None:
    path = source(tmp_path / "a.jsonl", [line("a"), line("b", talk("x" * 100_000_000))])
    error = refused(tmp_path, path)
    assert (error.path, error.row, error.field) == (str(path), 1, "messages")
    assert "100 MB" in error.message


def test_lines_that_cannot_be_read_are_skipped_and_counted_when_asked(tmp_path: Path) -> None:
    lines = [line("a"), "{", line("b"), json.dumps({"messages": 5}), line("c", tools='[{"function": 5}, 6]')]
    asked = recipe(source(tmp_path / "a.jsonl", [*lines, line("d")]), on_bad_row="skip")
    made = mix(asked, tmp_path / "out")
    assert dropped(made) == {"a": {"bad_row": 3}}
    assert sorted(ids(tmp_path / "out")) == ["a", "b", "d"]
    assert made.made.sources[0].read == 6


def test_a_shard_of_a_dataset_that_is_damaged_is_told_and_may_be_skipped(tmp_path: Path) -> None:
    mix(recipe(plain_source(tmp_path / "a.jsonl", 9)), tmp_path / "first")
    (shard,) = (tmp_path / "first" / "data").iterdir()
    shard.write_bytes(shard.read_bytes()[:-100])
    with pytest.raises(DatasetCorrupt, match="cut short"):
        mix(recipe(tmp_path / "first"), tmp_path / "second")
    good = plain_source(tmp_path / "good.jsonl", 2)
    told = dry_mix(recipe(tmp_path / "first", good, on_bad_row="skip"))
    assert [dict(report.dropped) for report in told.sources] == [{"bad_row": 1}, {}]


def test_a_mix_of_mixes_keeps_every_field(tmp_path: Path) -> None:
    from orchard_core.datasets.store.reader import open_dataset

    path = source(tmp_path / "a.jsonl", [line("a", tags=["x"], mask=[0, 1, 0, 0], values=[0.1, 0.2, 0.3])])
    mix(recipe(path), tmp_path / "first")
    mix(recipe(tmp_path / "first"), tmp_path / "second")
    (first,), (second,) = open_dataset(tmp_path / "first"), open_dataset(tmp_path / "second")
    assert second == first.model_copy(update={"source": "first"})


@pytest.mark.parametrize("content", ["", "\n\n"])
def test_an_empty_source_alone_is_an_error_and_beside_others_is_none(tmp_path: Path, content: str) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_text(content)
    fields = {"path": str(empty), "format": "hf"}
    with pytest.raises(MixRefused, match="nothing is left of 0 rows: the sources are empty"):
        mix(recipe(fields), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    good = plain_source(tmp_path / "good.jsonl", 3)
    assert mix(recipe(fields, good), tmp_path / "out").rows == 3
    with pytest.raises(ConfigError, match="no row is left of source 'empty'"):
        mix(recipe({**fields, "weight": 1}, good), tmp_path / "weighted")


def test_when_all_is_dropped_the_error_says_by_what(tmp_path: Path) -> None:
    path = plain_source(tmp_path / "a.jsonl", 3, token_count=99_999)
    with pytest.raises(MixRefused, match="nothing is left of 3 rows: over_long 3"):
        mix(recipe(path), tmp_path / "out")


def test_paths_that_hold_nothing_are_refused_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(DatasetNotFound, match=r"nothing at .*gone"):
        mix(recipe(tmp_path / "gone"), tmp_path / "out")
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(FormatUnknown, match=r"notes\.txt"):
        mix(recipe(tmp_path / "notes.txt"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    path = plain_source(tmp_path / "a.jsonl", 1)
    path.chmod(0)
    with pytest.raises(DatasetError, match=r"a\.jsonl"):
        mix(recipe({"path": str(path), "format": "hf"}), tmp_path / "out")


def test_hostile_texts_survive_a_mix(tmp_path: Path) -> None:
    from orchard_core.datasets.store.reader import open_dataset

    said = "\x00\u2028\ud83d\ude00 \ud800 lone \x1b[31m"
    mix(recipe(source(tmp_path / "a.jsonl", [line("a", talk(said))])), tmp_path / "out")
    (row,) = open_dataset(tmp_path / "out")
    assert json.loads(row.messages)[0]["content"] == json.loads(json.dumps(said))
