"""How a writer ends: well, by an error, by a kill, on a full disk; and who goes on after it."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from orchard_core import (
    ConfigError,
    DatasetExists,
    DatasetNotFound,
    DatasetWriter,
    FormatUnsupported,
    ShardLimits,
    open_dataset,
)
from tests.datasets.making import make_row

SMALL = ShardLimits(group_rows=3, shard_rows=6)


def leave_behind(
    out: Path, count: int, *, plan: str = "", by: type[BaseException] = ZeroDivisionError
) -> None:
    """A writer whose block ends by an error after so many rows."""
    with DatasetWriter(out, limits=SMALL, plan=plan) as writer:
        for number in range(count):
            writer.write(make_row(number))
        raise by


def test_a_block_that_ends_makes_the_dataset(tmp_path: Path) -> None:
    with DatasetWriter(tmp_path / "out", limits=SMALL) as writer:
        for number in range(8):
            writer.write(make_row(number))
    assert list(open_dataset(tmp_path / "out")) == [make_row(number) for number in range(8)]


@pytest.mark.parametrize("leaving", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_a_block_that_an_error_leaves_with_nothing_durable_leaves_nothing(
    tmp_path: Path, leaving: type[BaseException]
) -> None:
    with pytest.raises(leaving):
        leave_behind(tmp_path / "out", 1, by=leaving)
    assert not (tmp_path / "out").exists()


def test_a_writer_that_is_closed_in_its_block_makes_no_dataset(tmp_path: Path) -> None:
    with DatasetWriter(tmp_path / "out") as writer:
        writer.write(make_row())
        writer.close()
    assert not (tmp_path / "out").exists()


def test_a_dataset_is_finished_once(tmp_path: Path) -> None:
    with DatasetWriter(tmp_path / "out") as writer:
        writer.write(make_row())
        writer.finish()
        with pytest.raises(ConfigError, match="is closed"):
            writer.finish()
    assert list(open_dataset(tmp_path / "out")) == [make_row()]


def test_a_block_that_ends_with_a_row_no_column_holds_says_so_and_makes_no_dataset(tmp_path: Path) -> None:
    writer = DatasetWriter(tmp_path / "out")
    with pytest.raises(FormatUnsupported, match="'row1', field seed"), writer:  # noqa: PT012
        writer.write(make_row(0))
        writer.write(make_row(1).model_copy(update={"seed": 1 << 70}))
    assert not (tmp_path / "out").exists()


def test_a_row_that_comes_after_the_end_is_refused_and_not_lost(tmp_path: Path) -> None:
    with DatasetWriter(tmp_path / "out") as writer:
        writer.write(make_row())
        writer.finish()
        with pytest.raises(ConfigError, match="is closed"):
            writer.write(make_row(1))


def test_what_is_not_finished_is_no_dataset_and_the_error_says_how_to_go_on(tmp_path: Path) -> None:
    with suppress(ZeroDivisionError):
        leave_behind(tmp_path / "out", 8)
    with pytest.raises(DatasetNotFound, match="run the command that wrote it again"):
        open_dataset(tmp_path / "out")
    with pytest.raises(DatasetExists, match="not written to its end"):
        DatasetWriter(tmp_path / "out")


def test_a_writer_resumes_after_its_last_whole_shard(tmp_path: Path) -> None:
    with suppress(ZeroDivisionError):
        leave_behind(tmp_path / "out", 8)
    with DatasetWriter(tmp_path / "out", limits=SMALL, resume=True) as writer:
        assert writer.durable == {"train": 6}
        for number in range(writer.durable["train"], 9):
            writer.write(make_row(number))
        writer.finish()
    assert list(open_dataset(tmp_path / "out")) == [make_row(number) for number in range(9)]


def test_another_plan_is_refused(tmp_path: Path) -> None:
    with suppress(ZeroDivisionError):
        leave_behind(tmp_path / "out", 8, plan="one")
    with pytest.raises(ConfigError, match="another recipe"):
        DatasetWriter(tmp_path / "out", plan="other", resume=True)


DRIVER = """
import sys
from pathlib import Path
from orchard_core import DatasetWriter, ShardLimits
from tests.datasets.making import make_row
with DatasetWriter(Path(sys.argv[1]), limits=ShardLimits(group_rows=3, shard_rows=6), resume=True) as writer:
    done = writer.durable
    print("open", flush=True)
    for number in range(120):
        split = "test" if number % 4 == 0 else "train"
        if (number // 4 if split == "test" else number - number // 4 - 1) >= done.get(split, 0):
            writer.write(make_row(number, split=split))
            print("wrote", flush=True)
    writer.finish()
"""


def test_a_writer_that_is_killed_again_and_again_ends_with_every_row_once(tmp_path: Path) -> None:
    for lines in (1, 9, 17, 26, 33, 50):
        driver = subprocess.Popen(
            [sys.executable, "-c", DRIVER, str(tmp_path / "out")], stdout=subprocess.PIPE, text=True
        )
        assert driver.stdout is not None
        for _ in range(lines):
            driver.stdout.readline()
        driver.kill()
        driver.wait()
        driver.stdout.close()
    subprocess.run([sys.executable, "-c", DRIVER, str(tmp_path / "out")], check=True, capture_output=True)
    dataset = open_dataset(tmp_path / "out")
    made = [make_row(number, split="test" if number % 4 == 0 else "train") for number in range(120)]
    for split in ("train", "test"):
        assert list(dataset.rows(split)) == [row for row in made if row.split == split]


def test_a_writer_that_died_while_it_gave_the_shards_their_names_is_taken_up_again(tmp_path: Path) -> None:
    with suppress(ZeroDivisionError):
        leave_behind(tmp_path / "out", 12)
    partial = tmp_path / "out" / ".partial"
    (tmp_path / "out" / "data").mkdir()
    (partial / "train-00000.parquet").rename(tmp_path / "out" / "data" / "train-00000-of-00002.parquet")
    with DatasetWriter(tmp_path / "out", limits=SMALL, resume=True) as writer:
        assert writer.durable == {"train": 12}
        writer.finish()
    assert list(open_dataset(tmp_path / "out")) == [make_row(number) for number in range(12)]


FULL = """
import resource, signal, sys
from pathlib import Path
from orchard_core import DatasetWriter, ShardLimits, StoreError
from tests.datasets.making import make_row
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
try:
    with DatasetWriter(Path(sys.argv[1]), limits=ShardLimits(group_rows=3, shard_rows=6)) as writer:
        for number in range(8):
            writer.write(make_row(number))
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
        try:
            for number in range(8, 40):
                writer.write(make_row(number))
        except StoreError:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)  # there is room again, and rows are lost
except StoreError as error:
    print(error.message, error.hint)
"""


def test_a_full_disk_is_told_and_what_is_whole_is_kept(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = subprocess.run([sys.executable, "-c", FULL, str(out)], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"{out} cannot be written: ")
    assert "run the command again: it goes on" in done.stdout
    assert done.stderr == ""
    with DatasetWriter(out, limits=SMALL, resume=True) as writer:
        assert writer.durable == {"train": 6}
        for number in range(6, 20):
            writer.write(make_row(number))
        writer.finish()
    assert list(open_dataset(out)) == [make_row(number) for number in range(20)]
