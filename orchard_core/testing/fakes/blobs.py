"""Blobs in memory."""

from __future__ import annotations

import hashlib

from orchard_core.errors import RecordCorrupt
from orchard_core.types.rollout import Artifact


class FakeBlobs:
    """Honours `orchard_core.Blobs`, and takes new ones."""

    def __init__(self) -> None:
        self._held: dict[str, bytes] = {}
        self.reads: list[str] = []
        """Hashes in the order they were asked for."""

    def add(self, data: bytes) -> str:
        """Keep `data`; its SHA-256 in hexadecimal."""
        sha256 = hashlib.sha256(data).hexdigest()
        self._held[sha256] = data
        return sha256

    def file(self, path: str, data: bytes) -> Artifact:
        """Keep a file's bytes as an artifact."""
        return Artifact(path=path, kind="file", sha256=self.add(data), size=len(data))

    def tree(self, path: str, tar: bytes) -> Artifact:
        """Keep a directory's tar as an artifact."""
        return Artifact(path=path, kind="tree", sha256=self.add(tar), size=len(tar))

    async def read(self, sha256: str) -> bytes:
        """See Blobs."""
        self.reads.append(sha256)
        if sha256 not in self._held:
            raise RecordCorrupt(f"there is no blob {sha256}", hint="add it before it is read")
        return self._held[sha256]
