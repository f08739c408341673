"""Artifacts by content hash. A blob is seen whole or not at all, and stored once."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import secrets
import shutil
import threading
from collections.abc import AsyncIterable, AsyncIterator
from pathlib import Path

from orchard_core.errors import RecordCorrupt
from orchard_core.reward.blobs import BlobRef, capped, closing
from orchard_core.rollout.store.files import Appender, DiskFiles, Files

_PIECE = 1 << 20
_NAME = re.compile(r"[0-9a-f]{64}")


class BlobReader:
    """Blobs of a run directory, read only."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def path(self, sha256: str) -> Path:
        """Where the blob lies. Raises RecordCorrupt for what is no hash but, say, a path."""
        if not _NAME.fullmatch(sha256):
            raise RecordCorrupt(
                f"{sha256[:80]!r} is not the name of a blob (64 hexadecimal digits)",
                hint="restore the record that names it from a copy",
            )
        return self._root / sha256[:2] / sha256

    async def read(self, sha256: str) -> bytes:
        """The blob's bytes. Raises RecordCorrupt when they are missing or do not match the hash."""
        return await asyncio.to_thread(self._read, sha256)

    def _read(self, sha256: str) -> bytes:
        try:
            data = self.path(sha256).read_bytes()
        except FileNotFoundError:
            raise RecordCorrupt(f"blob {sha256} is not in {self._root}", hint="copy it back") from None
        if hashlib.sha256(data).hexdigest() != sha256:
            raise RecordCorrupt(f"blob {self.path(sha256)} does not match its hash", hint="copy it back")
        return data


class BlobWriter(BlobReader):
    """Blobs of a run directory. A blob's own bytes are durable before it gets its name; the name itself
    becomes durable with the next commit of the journal; `take_unsynced` names the directories for that."""

    def __init__(self, root: Path, *, files: Files | None = None) -> None:
        super().__init__(root)
        self._files = files or DiskFiles()
        self._unsynced: set[Path] = set()
        self._whole: BlobReader | None = None
        self._mutex = threading.Lock()

    def also_read(self, whole: BlobReader) -> None:
        """What is not here is looked for there."""
        self._whole = whole

    def _read(self, sha256: str) -> bytes:
        if self._whole is not None and not self.path(sha256).exists():
            return self._whole._read(sha256)
        return super()._read(sha256)

    def take_unsynced(self) -> set[Path]:
        """Directories whose entries are not known to be durable; the caller syncs them."""
        with self._mutex:
            taken, self._unsynced = self._unsynced, set()
        return taken

    async def write(self, data: AsyncIterable[bytes], *, limit: int) -> BlobRef:
        """Keep a stream. Raises BlobTooLarge, and OSError when the disk fails."""
        part = self._root / f".{secrets.token_hex(8)}.part"
        out = await asyncio.to_thread(self._files.append, part)
        digest = hashlib.sha256()
        try:
            pieces = _pieces(capped(data, limit))
            async with closing(pieces):
                async for piece in pieces:
                    digest.update(piece)
                    await asyncio.to_thread(out.write, piece)
            return await asyncio.to_thread(self._settle, part, digest.hexdigest(), out)
        except BaseException:
            await asyncio.to_thread(self._files.remove, part)
            raise
        finally:
            out.close()

    def _settle(self, part: Path, name: str, out: Appender) -> BlobRef:
        target = self.path(name)
        if target.exists():
            self._files.remove(part)
        else:
            out.sync()
            self._files.make_dir(target.parent)
            self._files.replace(part, target)
        # Also for a blob that was there: whoever wrote it may not have committed yet.
        with self._mutex:
            self._unsynced |= {self._root, target.parent}
        return BlobRef(sha256=name, size=out.size)

    def link(self, source: Path, name: str) -> None:
        """Keep a blob that lies whole in another run directory; the disk is asked for once where both are on
        one file system. Raises OSError, RecordCorrupt."""
        target = self.path(name)
        if not target.exists():
            part = self._root / f".{secrets.token_hex(8)}.part"
            self._files.make_dir(target.parent)
            try:
                os.link(source, part)
            except OSError:
                shutil.copy(source, part)
                copied = self._files.append(part)
                copied.sync()
                copied.close()
            self._files.replace(part, target)
        with self._mutex:
            self._unsynced |= {self._root, target.parent}

    def sweep(self) -> None:
        """Remove what a killed writer left half written."""
        for part in self._root.glob(".*.part"):
            self._files.remove(part)


async def _pieces(data: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """The same bytes in pieces worth a thread's while."""
    held = bytearray()
    async with closing(data):
        async for piece in data:
            held += piece
            if len(held) >= _PIECE:
                yield bytes(held)
                held.clear()
    if held:
        yield bytes(held)
