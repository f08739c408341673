"""A run directory: what is written is read back, by plain tools too, and damage is told."""

from __future__ import annotations

import asyncio
import gc
import io
import json
import os
import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from orchard_core import (
    BlobTooLarge,
    ErrorInfo,
    HarnessResult,
    Message,
    Outcome,
    Phase,
    RecordCorrupt,
    RewardResult,
    Rollout,
    RunExists,
    RunLocked,
    RunNotFound,
    StopReason,
    StoreError,
    Trajectory,
)
from orchard_core.rollout.store.commit import shard_path
from orchard_core.rollout.store.entry import Finished
from orchard_core.rollout.store.files import DiskFiles
from orchard_core.rollout.store.frame import pack, to_json, unpack
from orchard_core.rollout.store.journal import JournalReader, decode, encode
from orchard_core.rollout.store.run import open_run
from orchard_core.rollout.store.writer import RunWriter

from ..making import make_config, make_planned, make_rollout


async def write(root: Path, count: int, **options: object) -> list[Finished]:
    async with await RunWriter.open(root, make_config(), **options) as writer:  # type: ignore[arg-type]
        await writer.plan([make_planned("a", n) for n in range(count)])
        return [await writer.finish(make_rollout("a", n)) for n in range(count)]


async def _once(data: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(data), 7):
        yield data[start : start + 7]


async def test_a_run_reads_back_what_was_written(tmp_path: Path) -> None:
    await write(tmp_path, 5)
    run = open_run(tmp_path)
    assert [rollout.attempt for rollout in run.rollouts()] == list(range(5))
    assert next(iter(run)) == make_rollout("a", 0)
    assert run.config == make_config()
    assert run.rollout(make_planned("a", 3).id[:10]).attempt == 3
    assert run.damaged() == []


async def test_shards_and_journal_can_be_read_by_plain_tools(tmp_path: Path) -> None:
    await write(tmp_path, 3)
    shard = io.BytesIO(shard_path(tmp_path, 0).read_bytes())
    lines = zstandard.ZstdDecompressor().stream_reader(shard, read_across_frames=True).read().splitlines()
    assert [json.loads(line)["attempt"] for line in lines] == [0, 1, 2]
    journal = [json.loads(line) for line in (tmp_path / "journal.jsonl").read_text().splitlines()]
    assert [line["type"] for line in journal] == ["planned"] * 3 + ["finished"] * 3


async def test_a_reader_sees_a_live_run_grow(tmp_path: Path) -> None:
    async with await RunWriter.open(tmp_path, make_config()) as writer:
        await writer.plan([make_planned("a", n) for n in range(3)])
        run = open_run(tmp_path)
        for n in range(3):
            assert len(list(run.rollouts())) == n
            assert len(run.missing()) == 3 - n
            await writer.finish(make_rollout("a", n))
        assert len(list(run.rollouts())) == 3


async def test_rollouts_that_finish_together_share_a_sync(tmp_path: Path) -> None:
    async with await RunWriter.open(tmp_path, make_config()) as writer:
        await writer.plan([make_planned("a", n) for n in range(64)])
        before = writer.commits
        await asyncio.gather(*(writer.finish(make_rollout("a", n)) for n in range(64)))
        assert writer.commits - before < 64


async def test_only_one_writer_and_no_overwriting(tmp_path: Path) -> None:
    writer = await RunWriter.open(tmp_path, make_config())
    with pytest.raises(RunLocked, match=f"process {os.getpid()}"):
        await RunWriter.open(tmp_path, make_config(), resume=True)
    await writer.close()
    await writer.close()
    with pytest.raises(RunExists):
        await RunWriter.open(tmp_path, make_config())


async def test_a_later_record_of_a_rollout_replaces_the_earlier_one(tmp_path: Path) -> None:
    async with await RunWriter.open(tmp_path, make_config()) as writer:
        await writer.plan([make_planned()])
        await writer.finish(make_rollout(outcome=Outcome.SANDBOX_FAILED, score=None, error="gone"))
    async with await RunWriter.open(tmp_path, make_config(), resume=True) as writer:
        await writer.finish(make_rollout(tries=2))
    async with await RunWriter.open(tmp_path, make_config(), resume=True) as writer:
        assert writer.salvaged == 0
    assert [(rollout.tries, rollout.outcome) for rollout in open_run(tmp_path)] == [(2, Outcome.COMPLETED)]


async def test_a_whole_rollout_whose_line_was_lost_is_salvaged(tmp_path: Path) -> None:
    await write(tmp_path, 3)
    journal = tmp_path / "journal.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-1]) + b'{"torn')
    async with await RunWriter.open(tmp_path, make_config(), resume=True) as writer:
        assert writer.salvaged == 1
    assert len(list(open_run(tmp_path).rollouts())) == 3


async def test_a_damaged_line_in_the_middle_costs_no_other_line(tmp_path: Path) -> None:
    await write(tmp_path, 4)
    journal = tmp_path / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    lines[5] = lines[5].replace(b'"attempt":1', b'"attempt":7')
    journal.write_bytes(b"".join(lines))
    reader = JournalReader(journal)
    assert len(list(reader.entries())) == 7
    assert reader.damaged == 1
    async with await RunWriter.open(tmp_path, make_config(), resume=True) as writer:
        assert sorted(entry.attempt for entry in writer.state.finished.values()) == [0, 2, 3]


async def test_a_damaged_record_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    entries = await write(tmp_path, 3)
    shard = shard_path(tmp_path, 0)
    data = bytearray(shard.read_bytes())
    data[entries[1].offset + 60] ^= 1
    shard.write_bytes(data)
    run = open_run(tmp_path)
    assert len(run.damaged()) == 1
    with pytest.raises(RecordCorrupt, match=entries[1].id):
        list(run.rollouts())
    assert run.rollout(entries[2].id).attempt == 2


async def test_reading_does_not_hold_what_was_read(tmp_path: Path) -> None:
    text = "".join(chr(33 + (n * n) % 90) for n in range(200_000))
    big = {"m": Message(role="user", raw=json.dumps(text))}
    async with await RunWriter.open(tmp_path, make_config()) as writer:
        await writer.plan([make_planned("a", n) for n in range(60)])
        for n in range(60):
            await writer.finish(
                make_rollout("a", n).model_copy(update={"trajectory": Trajectory(messages=big)})
            )
    gc.collect()
    tracemalloc.start()
    for _ in open_run(tmp_path).rollouts():
        pass
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10 * len(text)


async def test_a_disk_that_fails_is_told_to_every_waiting_rollout_and_a_resume_mends_it(
    tmp_path: Path,
) -> None:
    class Full(DiskFiles):
        broken = False

        def sync_dir(self, path: Path) -> None:
            if self.broken:
                raise OSError(28, "No space left on device")
            super().sync_dir(path)

    files = Full()
    writer = await RunWriter.open(tmp_path, make_config(), files=files)
    await writer.plan([make_planned("a", n) for n in range(3)])
    files.broken = True
    results = await asyncio.gather(
        *(writer.finish(make_rollout("a", n)) for n in range(2)), return_exceptions=True
    )
    assert all(isinstance(result, StoreError) and "No space left" in result.message for result in results)
    files.broken = False
    with pytest.raises(StoreError, match="can no longer be written"):
        await writer.finish(make_rollout("a", 2))
    await writer.close()
    async with await RunWriter.open(tmp_path, make_config(), resume=True) as again:
        await again.finish(make_rollout("a", 2))
    assert [rollout.attempt for rollout in open_run(tmp_path)] == [2]


async def test_two_runs_say_in_what_their_configurations_differ(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 2)):
        async with await RunWriter.open(tmp_path / name, make_config(seed=seed)):
            pass
    [found] = open_run(tmp_path / "a").differences(open_run(tmp_path / "b"))
    assert (found.field, found.left, found.right) == ("seed", 1, 2)


def test_a_path_without_a_run_says_so(tmp_path: Path) -> None:
    with pytest.raises(RunNotFound, match="no run at"):
        open_run(tmp_path / "nothing")


def test_a_newer_record_is_refused_with_the_way_out() -> None:
    line = to_json(make_rollout()).replace(b'"schema_version":1', b'"schema_version":99,"new_field":1')
    with pytest.raises(StoreError, match="newer Orchard") as caught:
        unpack(pack(line), where="here")
    assert "upgrade" in caught.value.hint


def test_text_that_utf8_cannot_carry_never_keeps_a_rollout_from_being_stored() -> None:
    odd = "odd \udc80 text \ud800"
    rollout = make_rollout(
        error="x",
        result=HarnessResult(stop=StopReason.SUBMITTED, answer=odd, message=odd),
        reward=RewardResult(score=1.0, reason=odd, log=odd, breakdown={odd: 1.0}),
        metadata={odd: [odd, {"k": odd}]},
    ).model_copy(update={"error": ErrorInfo(kind="X", phase=Phase.AGENT, message=odd)})
    stored = unpack(pack(to_json(rollout)), where="here")
    assert stored.error is not None
    assert stored.error.message == "odd \\udc80 text \\ud800"
    assert stored.score == 1.0


def test_a_lone_surrogate_in_a_message_round_trips() -> None:
    raw = json.dumps({"role": "assistant", "content": "\udc80"})
    rollout = make_rollout().model_copy(
        update={"trajectory": Trajectory(messages={"m": Message(role="assistant", raw=raw)})}
    )
    stored = unpack(pack(to_json(rollout)), where="here")
    assert json.loads(stored.trajectory.messages["m"].raw)["content"] == "\udc80"


def test_scores_that_are_no_numbers_do_not_break_the_record() -> None:
    rollout = make_rollout(reward=RewardResult(score=1.0, breakdown={"a": float("nan"), "b": float("inf")}))
    stored = unpack(pack(to_json(rollout)), where="here")
    assert stored.reward is not None
    assert stored.reward.breakdown["b"] == float("inf")


@given(st.text(), st.integers(0, 200))
def test_a_line_with_any_byte_changed_is_not_read(text: str, place: int) -> None:
    line = encode(make_planned("a").model_copy(update={"tags": (text,)}))[:-1]
    assert decode(line) is not None
    changed = bytearray(line)
    changed[place % len(line)] ^= 0x15
    assert decode(bytes(changed)) is None


async def test_blobs_are_stored_once_and_checked_when_read(tmp_path: Path) -> None:
    async with await RunWriter.open(tmp_path, make_config()) as writer:
        first = await writer.blobs.write(_once(b"content"), limit=100)
        second = await writer.blobs.write(_once(b"content"), limit=100)
        assert first == second
        with pytest.raises(BlobTooLarge):
            await writer.blobs.write(_once(b"x" * 101), limit=100)
    files = [path for path in (tmp_path / "blobs").rglob("*") if path.is_file()]
    assert [path.name for path in files] == [first.sha256]
    run = open_run(tmp_path)
    assert await run.blobs.read(first.sha256) == b"content"
    files[0].write_bytes(b"Content")
    with pytest.raises(RecordCorrupt, match="does not match"):
        await run.blobs.read(first.sha256)
    with pytest.raises(RecordCorrupt, match="is not in"):
        await run.blobs.read("0" * 64)


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "/etc/passwd", "ab", "A" * 64, "0" * 64 + "\n"])
async def test_a_name_that_is_no_hash_never_becomes_a_path(tmp_path: Path, name: str) -> None:
    await write(tmp_path, 1)
    with pytest.raises(RecordCorrupt, match="is not the name of a blob"):
        await open_run(tmp_path).blobs.read(name)


async def test_a_stream_that_is_not_read_to_its_end_is_closed_at_once(tmp_path: Path) -> None:
    closed: list[bool] = []

    async def endless() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"x"
        finally:
            closed.append(True)

    async with await RunWriter.open(tmp_path, make_config()) as writer:
        stream = endless()
        with pytest.raises(BlobTooLarge):
            await writer.blobs.write(stream, limit=100)
        assert closed == [True]


async def test_what_a_killed_writer_left_half_written_is_swept(tmp_path: Path) -> None:
    await write(tmp_path, 1)
    (tmp_path / "blobs" / ".abc.part").write_bytes(b"half")
    async with await RunWriter.open(tmp_path, make_config(), resume=True):
        pass
    assert list((tmp_path / "blobs").iterdir()) == []


def test_rollout_ids_that_are_ambiguous_are_refused(tmp_path: Path) -> None:
    asyncio.run(write(tmp_path, 20))
    with pytest.raises(RunNotFound, match="finished rollouts have"):
        open_run(tmp_path).rollout("")


async def test_the_schema_is_stored_with_each_rollout() -> None:
    assert to_json(make_rollout()).startswith(b'{"schema_version":1,')
    assert isinstance(unpack(pack(to_json(make_rollout())), where="x"), Rollout)
