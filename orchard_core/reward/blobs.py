"""Artifacts by content hash: where they go while a rollout runs."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

from orchard_core.errors import BlobTooLarge, RecordCorrupt


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobRef:
    """A stored blob."""

    sha256: str
    """Its hash, hexadecimal."""
    size: int
    """Its bytes."""


class BlobSink(Protocol):
    """Where artifacts go while a rollout runs; what a reward reads them back from."""

    async def read(self, sha256: str) -> bytes:
        """The blob's bytes. Raises RecordCorrupt."""

    async def write(self, data: AsyncIterable[bytes], *, limit: int) -> BlobRef:
        """Keep a stream. Raises BlobTooLarge as soon as it passes `limit` bytes."""


class MemoryBlobs:
    """Blobs held in memory, for what runs without a store."""

    def __init__(self) -> None:
        self._blobs: dict[str, bytes] = {}

    async def read(self, sha256: str) -> bytes:
        """The blob's bytes. Raises RecordCorrupt when there is none."""
        try:
            return self._blobs[sha256]
        except KeyError:
            raise RecordCorrupt(f"blob {sha256} is not there") from None

    async def write(self, data: AsyncIterable[bytes], *, limit: int) -> BlobRef:
        """Keep a stream. Raises BlobTooLarge."""
        kept = bytearray()
        async for piece in capped(data, limit):
            kept += piece
        name = hashlib.sha256(kept).hexdigest()
        self._blobs[name] = bytes(kept)
        return BlobRef(sha256=name, size=len(kept))


async def capped(data: AsyncIterable[bytes], limit: int) -> AsyncIterator[bytes]:
    """The same pieces. Raises BlobTooLarge as soon as they pass `limit` bytes."""
    total = 0
    async with closing(data):
        async for piece in data:
            total += len(piece)
            if total > limit:
                raise BlobTooLarge(
                    f"an artifact is larger than {limit} bytes",
                    hint="raise max_artifact_bytes, or let the task declare a smaller path",
                )
            yield piece


@asynccontextmanager
async def closing(stream: AsyncIterable[bytes]) -> AsyncIterator[None]:
    """Close a generator when its reader leaves, not when it is found as garbage: it may hold a connection."""
    try:
        yield
    finally:
        if isinstance(stream, AsyncGenerator):
            await stream.aclose()
