"""The one live writer of a run directory."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Container, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

from orchard_core.errors import ConfigError, RecordCorrupt, RunExists
from orchard_core.rollout.config import RunConfig
from orchard_core.rollout.store import frame as frames
from orchard_core.rollout.store.blobs import BlobReader, BlobWriter
from orchard_core.rollout.store.commit import SHARD_BYTES, Committer
from orchard_core.rollout.store.entry import (
    Cancelled,
    Dropped,
    Entry,
    Finished,
    Planned,
    Retried,
    Spent,
    Started,
)
from orchard_core.rollout.store.files import DiskFiles, Files, Lock, write_whole
from orchard_core.rollout.store.inheriting import entries_of, joined
from orchard_core.rollout.store.recover import Recovered, recover
from orchard_core.rollout.store.run import CONFIG_NAME, PLAN_NAME, load_rollout, read_config
from orchard_core.rollout.store.state import RunState
from orchard_core.rollout.store.summary import spent, summary
from orchard_core.types.rollout import Rollout


class RunWriter:
    """Makes what happens in a run durable. Every method returns after the disk has it; all raise
    StoreError when the disk fails."""

    def __init__(
        self,
        root: Path,
        *,
        config: RunConfig,
        files: Files,
        lock: Lock,
        recovered: Recovered,
        shard_bytes: int,
    ) -> None:
        self.root = root
        self.config = config
        self.state: RunState = recovered.state
        """What the journal holds, kept up to date."""
        self.salvaged = recovered.salvaged
        """Whole rollouts found in a shard that the journal did not know yet."""
        self.blobs = BlobWriter(root / "blobs", files=files)
        self._lock = lock
        self._whole: Path | None = None
        self._pool = ThreadPoolExecutor(
            max_workers=min(4, os.cpu_count() or 1), thread_name_prefix="orchard-pack"
        )
        self._committer = Committer(
            root,
            files=files,
            journal=recovered.journal,
            shard=recovered.shard,
            unsynced=self.blobs.take_unsynced,
            shard_bytes=shard_bytes,
        )

    @classmethod
    async def open(
        cls,
        root: Path,
        config: RunConfig,
        *,
        resume: bool = False,
        files: Files | None = None,
        shard_bytes: int = SHARD_BYTES,
    ) -> Self:
        """Start a run directory, or take one up again and mend what a killed writer left.

        Raises RunExists without `resume`, RunLocked, ConfigError when `config` differs from the stored
        one in a way that would mix two runs.
        """
        return await asyncio.to_thread(cls._open, root, config, resume, files or DiskFiles(), shard_bytes)

    @classmethod
    def _open(cls, root: Path, config: RunConfig, resume: bool, files: Files, shard_bytes: int) -> Self:
        root = root.absolute()
        if (root / PLAN_NAME).exists():
            raise RunExists(
                f"{root} holds a matrix, not a run", hint="name one of its cells, or choose another --out"
            )
        above = next(parent for parent in root.parents if parent.exists())
        files.make_dir(root / "shards")
        files.make_dir(root / "blobs")
        lock = files.lock(root / "lock")
        try:
            stored = _settle_config(root, config, resume, files)
            for folder in (root, *root.parents[: root.parents.index(above) + 1]):
                files.sync_dir(folder)
            recovered = recover(root, files)
            writer = cls(
                root, config=stored, files=files, lock=lock, recovered=recovered, shard_bytes=shard_bytes
            )
            writer.blobs.sweep()
        except BaseException:
            lock.release()
            raise
        return writer

    @property
    def commits(self) -> int:
        """Times the disk was synced for something reported."""
        return self._committer.commits

    async def inherit(self, whole: Path, tasks: Container[str]) -> None:
        """This run is a part of the one at `whole`, with these of its tasks: what that one's journal holds of
        them counts as done here too, and its records are read there."""
        own, others = await asyncio.to_thread(lambda: (entries_of(self.root), entries_of(whole)))
        self._whole = whole
        self.blobs.also_read(BlobReader(whole / "blobs"))
        self.state = joined(others, own, tasks)

    async def take(self, entry: Entry, frame: bytes | None = None) -> Entry:
        """Keep an entry of a part of this run, with the frame of its record where it has one; its blobs are
        here already."""
        written = (await self._committer.commit((entry,), frame))[0]
        self.state.apply(written)
        return written

    async def plan(self, items: Sequence[Planned]) -> None:
        """Add rollouts to the run."""
        if items:
            await self._committer.commit(tuple(items))
            for item in items:
                self.state.apply(item)

    async def started(self, rollout: str, *, tries: int) -> None:
        """A rollout takes a slot."""
        await self._committer.commit((Started(id=rollout, tries=tries, at=time.time()),))

    async def retried(self, rollout: Rollout) -> None:
        """A try failed and will be repeated."""
        entry = Retried(
            id=rollout.id,
            tries=rollout.tries,
            outcome=rollout.outcome,
            attribution=rollout.attribution,
            error=rollout.error.kind if rollout.error else "",
            at=time.time(),
            spent=spent(rollout),
        )
        await self._committer.commit((entry,))
        self.state.apply(entry)

    async def load(self, entry: Finished) -> Rollout:
        """A rollout that was finished before. Raises RecordCorrupt."""
        return await asyncio.to_thread(self._load, entry)

    def _load(self, entry: Finished) -> Rollout:
        """Here, or in the run that this is a part of: the bytes there are of another rollout, or none."""
        for root in (self.root, self._whole):
            with contextlib.suppress(RecordCorrupt):
                if root is None:
                    continue
                found = load_rollout(root, entry)
                if (found.id, found.tries) == (entry.id, entry.tries):
                    return found
        return load_rollout(self.root, entry)

    async def finish(self, rollout: Rollout) -> Finished:
        """Keep a rollout. On return it survives anything."""
        loop = asyncio.get_running_loop()
        frame = await loop.run_in_executor(self._pool, _packed, rollout)
        written = await self._committer.commit((summary(rollout),), frame)
        entry = written[0]
        assert isinstance(entry, Finished)
        self.state.apply(entry)
        return entry

    async def cancelled(self, name: str, record: Rollout | None = None) -> None:
        """A rollout was stopped, with what was done until then; a resumed run starts it again."""
        used = Spent() if record is None else spent(record)
        entry = Cancelled(id=name, at=time.time(), spent=used)
        await self._committer.commit((entry,))
        self.state.apply(entry)

    async def dropped(self, task: str, *, reason: str) -> None:
        """The sampler gave a task up."""
        entry = Dropped(task=task, reason=reason)
        await self._committer.commit((entry,))
        self.state.apply(entry)

    async def close(self) -> None:
        """Write what is queued and let others write; repeated calls are fine."""
        lock, self._lock = self._lock, _Released()
        if isinstance(lock, _Released):
            return
        await self._committer.close()
        self._pool.shutdown(wait=False)
        lock.release()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()


class _Released:
    def release(self) -> None:
        """Nothing is held."""


def _packed(rollout: Rollout) -> bytes:
    return frames.pack(frames.to_json(rollout))


def _settle_config(root: Path, config: RunConfig, resume: bool, files: Files) -> RunConfig:
    path = root / CONFIG_NAME
    if not path.exists():
        write_whole(files, path, config.model_dump_json(indent=2).encode())
        return config
    if not resume:
        raise RunExists(
            f"{root} holds a run already", hint="add --resume to go on with it, or choose another --out"
        )
    stored = read_config(root)
    conflicts = stored.conflicts(config)
    if conflicts:
        lines = "; ".join(f"{item.field}: {item.left!r} then, {item.right!r} now" for item in conflicts[:8])
        raise ConfigError(
            f"{root} was started with another configuration ({lines})",
            hint="resume with the same options, or choose another --out",
        )
    return stored
