"""Messages that stand in a source as a row has them are left there until their shard is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchard_core.datasets.mix.run import Going, mix
from orchard_core.datasets.mix.scan import Scan, scan
from orchard_core.errors import DatasetError
from tests.datasets.mix.making import files, line, plain_source, recipe, source, talk


def compact(text: str) -> str:
    """The same line without blanks between its members."""
    return json.dumps(json.loads(text), separators=(",", ":"), ensure_ascii=False)


def test_a_spaced_and_a_compact_source_give_the_same_bytes(tmp_path: Path) -> None:
    lines = [line(f"r-{n}", talk(f"Mend {n} — {'x' * 50 * n}")) for n in range(40)]
    asked = {"shards": {"rows": 7}, "splits": {"shares": {"train": 0.7, "test": 0.3}}}
    for name, made in (("spaced", lines), ("compact", map(compact, lines))):
        path = source(tmp_path / name / "a.jsonl", made)
        mix(recipe({"path": str(path), "weight": 1}, **asked), tmp_path / f"out-{name}")
    spaced, packed = files(tmp_path / "out-spaced"), files(tmp_path / "out-compact")
    shards = [name for name in spaced if name.endswith(".parquet")]
    assert len(shards) == 6
    assert all(spaced[name] == packed[name] for name in shards)


def test_rows_that_stand_in_several_files_come_from_the_right_one(tmp_path: Path) -> None:
    for name, straight in (("spaced", str), ("compact", compact)):
        for number in range(80):  # more files than are held open
            rows = [straight(line(f"{number}-{n}", talk(f"row {n} of file {number}"))) for n in range(2)]
            source(tmp_path / name / "parts" / f"part-{number}.jsonl", rows)
        asked = recipe(tmp_path / name / "parts", rows={"total": 300, "exhausted": "all_exhausted"})
        assert mix(asked, tmp_path / f"out-{name}").rows == 300
    spaced, packed = files(tmp_path / "out-spaced"), files(tmp_path / "out-compact")
    assert all(packed[name] == whole for name, whole in spaced.items() if name.endswith(".parquet"))


def test_only_what_does_not_stand_there_is_kept_a_second_time(tmp_path: Path) -> None:
    long = line("a", talk("x" * 100_000))
    asked = recipe(source(tmp_path / "a.jsonl", [compact(long), long]))
    job = Scan(number=0, source=asked.sources[0], recipe=asked, work=tmp_path)
    scan(job)
    assert 100_000 < job.spool.stat().st_size < 110_000


CHANGED = r"a\.jsonl was changed before its rows were written"
REFUSED = {"rewritten": CHANGED, "cut": CHANGED, "gone": r"there is nothing at .*a\.jsonl"}


@pytest.mark.parametrize("change", REFUSED)
def test_a_source_that_changes_before_its_rows_are_written_is_refused(tmp_path: Path, change: str) -> None:
    path = source(tmp_path / "a.jsonl", [compact(line(f"r-{n}")) for n in range(20)])
    other = plain_source(tmp_path / "b.jsonl", 5)

    def meanwhile(going: Going) -> None:
        if going.stage != "write" or not path.exists():
            return
        if change == "gone":
            path.unlink()
        else:
            path.write_text(path.read_text()[: 500 if change == "cut" else None])

    with pytest.raises(DatasetError, match=REFUSED[change]):
        mix(recipe(path, other, shards={"rows": 5}), tmp_path / "out", watch=meanwhile)
    assert not (tmp_path / "out" / "manifest.json").exists()
