"""Taking what a task declared out of the agent's sandbox, as streams, before it closes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from orchard_core.errors import FileMissing, IsADirectory
from orchard_core.reward.blobs import BlobSink
from orchard_core.sandbox.contract import Sandbox
from orchard_core.types.rollout import Artifact


async def collect(
    sandbox: Sandbox, paths: Iterable[str], blobs: BlobSink, *, limit: int
) -> tuple[Artifact, ...]:
    """Keep each declared path that exists: a directory as a tar, a file as its bytes.

    Raises BlobTooLarge when one passes `limit` bytes, SandboxError when it cannot be read.
    """
    found: list[Artifact] = []
    for path in paths:
        with contextlib.suppress(FileMissing):
            found.append(await _take(sandbox, path, blobs, limit))
    return tuple(found)


async def _take(sandbox: Sandbox, path: str, blobs: BlobSink, limit: int) -> Artifact:
    kind = (await sandbox.stat(path)).kind
    if kind == "other":
        raise FileMissing(f"{path} is neither a file nor a directory")
    if kind != "directory":
        with contextlib.suppress(IsADirectory):  # a link to a directory is taken as the directory
            blob = await blobs.write(sandbox.read(path), limit=limit)
            return Artifact(path=path, kind="file", sha256=blob.sha256, size=blob.size)
    blob = await blobs.write(sandbox.read_tree(path), limit=limit)
    return Artifact(path=path, kind="tree", sha256=blob.sha256, size=blob.size)
