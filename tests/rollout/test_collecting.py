"""Taking over what workers did: each rollout once, whatever is torn, gone or full."""

from __future__ import annotations

import shutil
from contextlib import aclosing
from pathlib import Path

import pytest

from orchard_core import Event, RolloutFinished, StoreError, open_run
from orchard_core.cli.display.progress import Progress
from orchard_core.rollout.store.commit import shard_path
from orchard_core.rollout.store.files import DiskFiles
from orchard_core.rollout.store.journal import encode
from orchard_core.rollout.store.writer import RunWriter
from orchard_core.rollout.workers.collector import Collector
from orchard_core.rollout.workers.earlier import parts_of, settle_earlier
from orchard_core.rollout.workers.tail import JournalTail
from orchard_core.testing import FakeTaskSet

from .making import make_config, make_planned, make_rollout
from .starting import Runs, collected


async def part(root: Path, index: int, *attempts: int) -> Path:
    """What a worker left that finished these attempts."""
    path = root / "workers" / f"{index:03d}"
    async with await RunWriter.open(path, make_config(), resume=True) as writer:
        await writer.plan([make_planned("a", n) for n in attempts if n not in _planned(writer)])
        for n in attempts:
            await writer.started(make_planned("a", n).id, tries=1)
            await writer.finish(make_rollout("a", n))
    return path


def _planned(writer: RunWriter) -> set[int]:
    return {entry.attempt for entry in writer.state.planned.values()}


def attempts_in(root: Path) -> list[int]:
    run = open_run(root)
    assert run.damaged() == []
    lines = [entry.id for entry in run.finished()]
    assert len(lines) == len(set(lines)) == (root / "journal.jsonl").read_text().count('"finished"')
    return sorted(rollout.attempt for rollout in run.rollouts())


def test_a_line_is_read_once_and_when_it_is_whole(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    tail = JournalTail(journal)
    assert tail.new() == []
    lines = [encode(make_planned("a", n)) for n in range(3)]
    journal.write_bytes(lines[0] + lines[1][:20])
    assert tail.new() == [make_planned("a", 0)]
    assert tail.new() == []
    journal.write_bytes(lines[0] + lines[1] + lines[2])
    assert tail.new() == [make_planned("a", 1), make_planned("a", 2)]


def test_what_was_written_in_place_of_torn_lines_is_read_too(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    tail = JournalTail(journal)
    lines = [encode(make_planned("a", n)) for n in range(4)]
    journal.write_bytes(lines[0] + b'{"type": "torn\n' + b"\0\0\n")
    assert tail.new() == [make_planned("a", 0)]
    journal.write_bytes(b"".join(lines))  # its writer has mended it and gone on
    assert tail.new() == [make_planned("a", n) for n in (1, 2, 3)]
    journal.write_bytes(lines[0] + lines[2])  # the machine lost what others had seen
    assert tail.new() == [make_planned("a", 0), make_planned("a", 2)]


async def test_each_rollout_is_taken_once_however_often_and_by_whom_it_is_collected(tmp_path: Path) -> None:
    told: list[Event] = []
    async with await RunWriter.open(tmp_path, make_config()) as writer:
        collector = Collector(writer, emit=told.append)
        where = await part(tmp_path, 0, 0, 1)
        await collector.collect([where])
        await collector.collect([where])
        await part(tmp_path, 0, 2)
        await collector.collect([where])
        await Collector(writer, emit=told.append).collect([where])  # another coordinator, before the tidying
        await collector.collect([await part(tmp_path, 1, 1)])  # locks did not hold: two had the same share
    assert attempts_in(tmp_path) == [0, 1, 2]
    assert sum(isinstance(event, RolloutFinished) for event in told) == 3


async def test_a_display_counts_what_was_spent_elsewhere(tmp_path: Path) -> None:
    progress = Progress()
    async with await RunWriter.open(tmp_path, make_config()) as writer:
        await Collector(writer, emit=progress.handle).collect([await part(tmp_path, 0, 0, 1)])
    assert (progress.done, progress.scored, progress.output_tokens) == (2, 2, 6)


async def test_a_part_whose_shard_is_gone_hides_no_other_and_is_kept(tmp_path: Path) -> None:
    shard_path(await part(tmp_path, 0, 0, 1), 0).unlink()
    await part(tmp_path, 1, 2)
    async with await RunWriter.open(tmp_path, make_config()) as writer:
        await settle_earlier(Collector(writer, emit=lambda _event: None), writer.root)
        assert set(writer.state.planned) - set(writer.state.finished) == {
            make_planned("a", n).id for n in (0, 1)
        }
    assert attempts_in(tmp_path) == [2]
    assert parts_of(tmp_path) == []
    assert [path.name[:11] for path in (tmp_path / "workers").iterdir()] == ["damaged-000"]


async def test_a_full_disk_is_told_with_what_to_do_and_the_next_start_goes_on(tmp_path: Path) -> None:
    class Full(DiskFiles):
        full = False

        def sync_dir(self, path: Path) -> None:
            if self.full:
                raise OSError(28, "No space left on device")
            super().sync_dir(path)

    files = Full()
    where = await part(tmp_path, 0, 0, 1, 2)
    async with await RunWriter.open(tmp_path, make_config(), files=files) as writer:
        files.full = True
        with pytest.raises(StoreError, match="No space left") as caught:
            await Collector(writer, emit=lambda _event: None).collect([where])
        assert "--resume" in caught.value.hint
    async with await RunWriter.open(tmp_path, make_config(), resume=True) as writer:
        await settle_earlier(Collector(writer, emit=lambda _event: None), writer.root)
    assert attempts_in(tmp_path) == [0, 1, 2]
    assert parts_of(tmp_path) == []


async def test_a_single_driver_takes_over_what_the_workers_of_a_killed_coordinator_did(
    runs: Runs, tmp_path: Path
) -> None:
    async with aclosing(runs(FakeTaskSet.of(4), concurrency=1)) as going:
        await anext(going)
    shutil.copytree(tmp_path / "run", tmp_path / "part")
    (tmp_path / "run/journal.jsonl").write_bytes(b"")
    shutil.rmtree(tmp_path / "run/shards")
    (tmp_path / "run/workers").mkdir()
    (tmp_path / "part").rename(tmp_path / "run/workers/000")
    done = {entry.id for entry in open_run(tmp_path / "run/workers/000").finished()}
    assert done
    ran = {rollout.id for rollout in await collected(runs(FakeTaskSet.of(4), resume=True))}
    assert not ran & done
    assert {entry.id for entry in open_run(tmp_path / "run").finished()} == ran | done
    assert len(ran | done) == 4
    assert parts_of(tmp_path / "run") == []
