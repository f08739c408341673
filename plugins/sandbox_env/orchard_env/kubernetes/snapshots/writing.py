"""A stream into pieces that are named by their content; few of them are in memory at a time."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterable

import zstandard

from orchard_env.kubernetes.snapshots.record import Chunk, folder_of
from orchard_env.kubernetes.snapshots.storage import Storage

_AT_ONCE = 3
_LEVEL = 1
_PAYS = 0.95
"""A piece that compression makes no smaller than this part of it is stored as it is."""


async def write_chunks(
    storage: Storage, place: str, data: AsyncIterable[bytes], chunk_bytes: int
) -> tuple[Chunk, ...]:
    """Store a stream. Raises what it raises, DiskFull, SandboxUnavailable; what was stored by then is the
    caller's to remove."""
    free = asyncio.Semaphore(_AT_ONCE)
    held = bytearray()
    made: list[asyncio.Task[Chunk]] = []

    async def store(index: int, piece: bytes) -> Chunk:
        try:
            chunk, packed = await asyncio.to_thread(_pack, piece)
            await storage.put(f"{folder_of(place)}/{index:06d}-{chunk.digest}", packed)
            return chunk
        finally:
            free.release()

    async def begin(piece: bytes) -> None:
        await free.acquire()
        for task in made:
            if task.done():
                task.result()  # a failure ends the whole
        made.append(asyncio.create_task(store(len(made), piece)))

    try:
        async for part in data:
            held += part
            while len(held) >= chunk_bytes:
                piece = bytes(held[:chunk_bytes])
                del held[:chunk_bytes]
                await begin(piece)
        if held or not made:
            await begin(bytes(held))
        return tuple(await asyncio.gather(*made))
    finally:
        for task in made:
            task.cancel()
        await asyncio.gather(*made, return_exceptions=True)


def _pack(piece: bytes) -> tuple[Chunk, bytes]:
    packed = zstandard.ZstdCompressor(level=_LEVEL).compress(piece)
    pays = len(packed) < len(piece) * _PAYS
    stored = packed if pays else piece
    digest = hashlib.sha256(stored).hexdigest()
    return Chunk(digest=digest, stored=len(stored), size=len(piece), packed=pays), stored
