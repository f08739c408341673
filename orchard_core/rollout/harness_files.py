"""Small files that a harness gives, such as its own event log."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

from orchard_core.reward.blobs import BlobSink
from orchard_core.rollout.text import storable
from orchard_core.types.rollout import Artifact


async def keep_files(files: Mapping[str, bytes], blobs: BlobSink, *, limit: int) -> tuple[Artifact, ...]:
    """Keep small files that a harness gave."""
    kept: list[Artifact] = []
    for name, data in files.items():
        blob = await blobs.write(_once(data), limit=limit)
        path = f"harness:{storable(name)}"
        kept.append(Artifact(path=path, kind="file", sha256=blob.sha256, size=blob.size))
    return tuple(kept)


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data
