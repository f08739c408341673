"""Group commit: many rollouts that finish at once share one sync of the shard and one of the journal."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from orchard_core.errors import StoreError
from orchard_core.rollout.store.entry import Entry, Finished
from orchard_core.rollout.store.files import Appender, Files
from orchard_core.rollout.store.journal import encode

SHARD_BYTES = 256 << 20
"""A shard that has reached this size is followed by a new one."""
_BATCH = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    entries: tuple[Entry, ...]
    frame: bytes | None
    done: asyncio.Future[tuple[Entry, ...]]
    loop: asyncio.AbstractEventLoop


class Committer:
    """Owns the journal and the open shard; a thread of its own does every write, so order is kept."""

    def __init__(
        self,
        root: Path,
        *,
        files: Files,
        journal: Appender,
        shard: int,
        unsynced: Callable[[], set[Path]],
        shard_bytes: int = SHARD_BYTES,
    ) -> None:
        self._shard_bytes = shard_bytes
        self._root = root
        self._files = files
        self._journal = journal
        self._number = shard
        self._shard: Appender | None = None
        self._unsynced = unsynced
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._broken: BaseException | None = None
        self.commits = 0
        """Times everything was synced; a rollout shares one with all that finish meanwhile."""
        self._thread = threading.Thread(target=self._work, name="orchard-store", daemon=True)
        self._thread.start()

    async def commit(self, entries: tuple[Entry, ...], frame: bytes | None = None) -> tuple[Entry, ...]:
        """Return, once all is durable, the entries as written: a Finished one then says where its frame
        lies. Raises StoreError when the disk fails; nothing further is then accepted."""
        loop = asyncio.get_running_loop()
        job = _Job(entries=entries, frame=frame, done=loop.create_future(), loop=loop)
        self._jobs.put(job)
        # A cancelled caller does not take its rollout back: what was handed over is written.
        return await asyncio.shield(job.done)

    async def close(self) -> None:
        """Write what is queued, then give the files back."""
        self._jobs.put(None)
        await asyncio.to_thread(self._thread.join)

    def _work(self) -> None:
        while True:
            batch = self._next_batch()
            jobs = [job for job in batch if job is not None]
            if jobs:
                self._settle(jobs)
            if None in batch:
                break
        for file in (self._journal, self._shard):
            if file is not None:
                file.close()

    def _next_batch(self) -> list[_Job | None]:
        batch = [self._jobs.get()]
        with suppress(queue.Empty):
            while len(batch) < _BATCH:
                batch.append(self._jobs.get_nowait())
        return batch

    def _settle(self, jobs: list[_Job]) -> None:
        try:
            if self._broken is not None:
                raise self._broken
            written = self._write(jobs)
        except BaseException as error:  # noqa: BLE001 - border: whatever broke, every waiting caller is told
            # After a failed write or sync nobody knows what is on the disk; only a fresh opening finds out.
            self._broken = error
            _tell(jobs, _as_store_error(error, self._root))
            return
        _tell(jobs, written)

    def _write(self, jobs: list[_Job]) -> list[tuple[Entry, ...]]:
        for folder in sorted(self._unsynced()):
            self._files.sync_dir(folder)
        written = [self._placed(job) for job in jobs]
        if self._shard is not None and any(job.frame is not None for job in jobs):
            self._shard.sync()
        self._journal.write(b"".join(encode(entry) for entries in written for entry in entries))
        self._journal.sync()
        self.commits += 1
        return written

    def _placed(self, job: _Job) -> tuple[Entry, ...]:
        if job.frame is None:
            return job.entries
        shard = self._open_shard()
        place = {"shard": self._number, "offset": shard.size, "length": len(job.frame)}
        shard.write(job.frame)
        return tuple(
            entry.model_copy(update=place) if isinstance(entry, Finished) else entry for entry in job.entries
        )

    def _open_shard(self) -> Appender:
        if self._shard is not None and self._shard.size >= self._shard_bytes:
            self._shard.sync()
            self._shard.close()
            self._shard = None
            self._number += 1
        if self._shard is None:
            path = shard_path(self._root, self._number)
            self._shard = self._files.append(path)
            self._files.sync_dir(path.parent)
        return self._shard


def shard_path(root: Path, number: int) -> Path:
    """Where a shard lies."""
    return root / "shards" / f"{number:05d}.jsonl.zst"


def _as_store_error(error: BaseException, root: Path) -> StoreError:
    if isinstance(error, StoreError):
        return error
    return StoreError(
        f"{root} can no longer be written: {error}",
        hint="mend the disk (space, quota, permissions), then run the same command with --resume",
    )


def _tell(jobs: list[_Job], result: list[tuple[Entry, ...]] | StoreError) -> None:
    """Wake every caller, with one call into the loop."""

    def settle() -> None:
        for number, job in enumerate(jobs):
            if job.done.done():
                continue
            if isinstance(result, StoreError):
                job.done.set_exception(result)
                job.done.exception()  # seen: a caller that was cancelled no longer asks
            else:
                job.done.set_result(result[number])

    with suppress(RuntimeError):  # the loop is closed: nobody waits any more
        jobs[0].loop.call_soon_threadsafe(settle)
