"""The pieces of a snapshot back into a stream; none is given before it was found to be what was saved."""

from __future__ import annotations

import asyncio
import hashlib
from collections import deque
from collections.abc import AsyncIterator

import zstandard

from orchard_env.kubernetes.snapshots.record import Chunk, SnapshotDamaged, SnapshotRecord
from orchard_env.kubernetes.snapshots.storage import ObjectMissing, Storage

_AHEAD = 3


async def read_chunks(storage: Storage, record: SnapshotRecord) -> AsyncIterator[bytes]:
    """The archive, piece by piece. Raises SnapshotDamaged, SandboxUnavailable."""
    coming: deque[asyncio.Task[bytes]] = deque()
    try:
        for index in range(len(record.chunks)):
            coming.append(asyncio.create_task(_read(storage, record, index)))
            if len(coming) == _AHEAD:
                yield await coming.popleft()
        while coming:
            yield await coming.popleft()
    finally:
        for task in coming:
            task.cancel()
        await asyncio.gather(*coming, return_exceptions=True)


async def _read(storage: Storage, record: SnapshotRecord, index: int) -> bytes:
    try:
        stored = await storage.get(record.path_of(index))
    except ObjectMissing as error:
        raise _damaged(record, index, "is gone") from error
    piece = await asyncio.to_thread(_unpack, record.chunks[index], stored)
    if piece is None:
        raise _damaged(record, index, "is not what was saved")
    return piece


def _unpack(chunk: Chunk, stored: bytes) -> bytes | None:
    """None for what is not that piece."""
    if len(stored) != chunk.stored or hashlib.sha256(stored).hexdigest() != chunk.digest:
        return None
    if not chunk.packed:
        return stored if len(stored) == chunk.size else None
    try:
        piece = zstandard.ZstdDecompressor().decompress(stored, max_output_size=chunk.size)
    except zstandard.ZstdError:
        return None
    return piece if len(piece) == chunk.size else None


def _damaged(record: SnapshotRecord, index: int, what: str) -> SnapshotDamaged:
    return SnapshotDamaged(
        f"piece {index} of {len(record.chunks)} of a snapshot {what} ({record.path_of(index)})",
        hint="it was discarded meanwhile, or somebody changed the storage: restore another snapshot",
    )
