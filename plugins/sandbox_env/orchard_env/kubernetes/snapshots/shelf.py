"""The snapshots of one place in storage, whoever saved them."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterable, AsyncIterator

from orchard_core import OrchardError, SandboxSpec, Snapshot, SnapshotMissing, unbroken
from orchard_env.kubernetes.snapshots.config import SnapshotConfig
from orchard_env.kubernetes.snapshots.reading import read_chunks
from orchard_env.kubernetes.snapshots.record import (
    TENANT_LABEL,
    SnapshotRecord,
    check_fits,
    folder_of,
    id_of,
    missing,
    path_of,
    read_record,
    spec_digest,
)
from orchard_env.kubernetes.snapshots.storage import ObjectMissing, Storage
from orchard_env.kubernetes.snapshots.writing import write_chunks

_FOLDER = "snapshots"


class SnapshotShelf:
    """A snapshot is there once its record is, which is written last and removed first."""

    def __init__(self, config: SnapshotConfig, provider: str) -> None:
        """Raises ConfigError."""
        self._config = config
        self._provider = provider
        self._storage = Storage(config)
        self._own: set[str] = set()
        self._readers: Counter[str] = Counter()
        self._read = asyncio.Event()

    async def save(self, changes: AsyncIterable[bytes], spec: SandboxSpec) -> Snapshot:
        """Store an archive of changes. When that fails, or is cancelled, nothing is left. Raises DiskFull,
        SandboxUnavailable, and what the archive raises."""
        place = secrets.token_hex(16)
        try:
            chunks = await write_chunks(self._storage, place, changes, self._config.chunk_mb << 20)
            record = SnapshotRecord(
                place=place,
                image=str(spec.image),
                user=spec.user,
                spec=spec_digest(spec),
                created=time.time(),
                tenant=spec.labels.get(TENANT_LABEL, ""),
                chunks=chunks,
            )
            stored = record.bytes()
            snapshot_id = id_of(stored)
            await self._storage.put(path_of(snapshot_id), stored)
        except BaseException:
            await unbroken(self._forget(place))
            raise
        self._own.add(snapshot_id)
        return Snapshot(id=snapshot_id, provider=self._provider, size=record.size)

    async def find(self, snapshot: Snapshot, spec: SandboxSpec) -> SnapshotRecord:
        """What a spec begins with. Raises SnapshotMissing, SandboxUnsupported, SandboxUnavailable."""
        try:
            stored = await self._storage.get(path_of(snapshot.id))
        except ObjectMissing as error:
            raise missing(snapshot.id) from error
        record = read_record(snapshot.id, stored)
        check_fits(record, snapshot.id, spec)
        return record

    def read(self, record: SnapshotRecord) -> AsyncIterator[bytes]:
        """Its archive. Raises SnapshotDamaged, SandboxUnavailable."""
        return read_chunks(self._storage, record)

    def begin_reading(self, place: str) -> None:
        """Keep this process from removing the pieces until `end_reading`."""
        self._readers[place] += 1

    def end_reading(self, place: str) -> None:
        """Once for each beginning."""
        self._readers[place] -= 1
        if not self._readers[place]:
            del self._readers[place]
            self._read.set()

    async def discard(self, snapshot: Snapshot) -> None:
        """Remove one, when what this process restores from it stands; fine when it is gone. A restore in
        another process that comes too late raises SnapshotMissing. Raises SandboxUnavailable."""
        try:
            path = path_of(snapshot.id)
            record = SnapshotRecord.model_validate_json(await self._storage.get(path))
        except (ObjectMissing, SnapshotMissing, ValueError):
            self._own.discard(snapshot.id)
            return
        await self._storage.delete([path])
        self._own.discard(snapshot.id)
        while record.place in self._readers:
            self._read.clear()
            await self._read.wait()
        await self._storage.delete_below(folder_of(record.place))

    async def discard_own(self) -> None:
        """Remove those that this process saved, unless they are to be kept. Raises SandboxUnavailable."""
        if self._config.keep:
            return
        for snapshot_id in list(self._own):
            await self.discard(Snapshot(id=snapshot_id, provider=self._provider, size=0))

    async def listed(self, *, after: str = "") -> AsyncIterator[tuple[str, SnapshotRecord]]:
        """Every snapshot there, in the order of the ids, so that a listing goes on where one ended: `after`
        its last id. Damaged records are left out. Raises SandboxUnavailable."""
        # Storage on a file system lists in no order; of each snapshot only the id is held.
        found = [path async for paths in self._storage.paths(_FOLDER, after=after) for path in paths]
        for path in sorted(found):
            snapshot_id = path.removeprefix(f"{_FOLDER}/")
            try:
                yield snapshot_id, read_record(snapshot_id, await self._storage.get(path))
            except (ObjectMissing, SnapshotMissing):
                continue

    async def sweep(self, older_s: float) -> int:
        """Remove pieces older than so many seconds whose record was never written: their saver was killed.
        Gives how many folders. Raises SandboxUnavailable."""
        kept = {record.place async for _, record in self.listed()}
        gone = set()
        async for folder, age_s in self._storage.folders("data"):
            if folder not in kept and age_s > older_s:
                gone.add(folder)
        for folder in gone:
            await self._storage.delete_below(folder_of(folder))
        return len(gone)

    async def _forget(self, place: str) -> None:
        try:
            await self._storage.delete_below(folder_of(place))
        except OrchardError:
            return  # `sweep` finds it
