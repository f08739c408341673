"""The file half of a fake sandbox: a directory of this host taken for a root file system."""

from __future__ import annotations

import asyncio
import errno
import io
import os
import posixpath
import shutil
import stat
import tarfile
import tempfile
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal

from orchard_core.errors import (
    ArchiveEscape,
    DiskFull,
    FileDenied,
    FileError,
    FileExists,
    FileMissing,
    IsADirectory,
    NotADirectory,
)
from orchard_core.types.sandbox import FileEntry

_CHUNK = 1 << 18
_TYPED: dict[int, type[FileError]] = {
    errno.ENOENT: FileMissing,
    errno.EEXIST: FileExists,
    errno.EACCES: FileDenied,
    errno.EPERM: FileDenied,
    errno.ENOTDIR: NotADirectory,
    errno.EISDIR: IsADirectory,
    errno.ENOSPC: DiskFull,
    errno.EDQUOT: DiskFull,
}


@contextmanager
def typed_errors(path: str) -> Iterator[None]:
    """Turn an OSError into the tree's own class."""
    try:
        yield
    except OSError as error:
        kind = _TYPED.get(error.errno or 0, FileError)
        raise kind(f"{path!r}: {error.strerror}") from error


class FakeFiles:
    """Paths inside map to paths under `root`; a path that stands under `root` already is left alone."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def host(self, path: str) -> Path:
        """Where `path` really lies. Raises FileError for a relative one."""
        if not path.startswith("/"):
            raise FileError(f"{path!r} is not an absolute path", hint="start it with a slash")
        clean = posixpath.normpath("/" + path.lstrip("/"))
        if clean == str(self.root) or clean.startswith(f"{self.root}/"):
            return Path(clean)
        return self.root / clean.lstrip("/")

    async def read(self, path: str, offset: int, length: int | None) -> AsyncIterator[bytes]:
        """Stream a range of a regular file."""
        with typed_errors(path):
            if not stat.S_ISREG(self.host(path).stat().st_mode):
                kind = IsADirectory if self.host(path).is_dir() else FileError
                raise kind(f"{path!r} is not a regular file")
            file = self.host(path).open("rb")
        with file:
            file.seek(offset)
            left = length
            while left is None or left > 0:
                piece = file.read(_CHUNK if left is None else min(_CHUNK, left))
                if not piece:
                    return
                left = None if left is None else left - len(piece)
                yield piece
                await asyncio.sleep(0)

    async def write(self, path: str, data: bytes | AsyncIterable[bytes], mode: int) -> None:
        """Write beside the target, then rename: whole or not at all."""
        target = self.host(path)
        with typed_errors(path):
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.is_dir():
                raise IsADirectory(f"{path!r} is a directory")
            handle, name = tempfile.mkstemp(prefix=".orchard-", dir=target.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                await _pour(data, file)
            with typed_errors(path):
                Path(name).chmod(mode)
                Path(name).replace(target)
        finally:
            Path(name).unlink(missing_ok=True)

    def entry(self, path: str) -> FileEntry:
        """One entry, its links not followed."""
        with typed_errors(path):
            found = self.host(path).lstat()
        return _entry(self.host(path), posixpath.normpath(path), found)

    def entries(self, path: str) -> list[FileEntry]:
        """A directory's entries by name."""
        with typed_errors(path):
            names = sorted(os.listdir(self.host(path)))  # noqa: PTH208 - names, not paths
        entries = []
        for name in names:
            try:
                found = (self.host(path) / name).lstat()
            except FileNotFoundError:
                continue
            entries.append(_entry(self.host(path) / name, posixpath.join(path, name), found))
        return entries

    def mkdir(self, path: str) -> None:
        """Make a directory and its parents."""
        try:
            with typed_errors(path):
                self.host(path).mkdir(parents=True, exist_ok=True)
        except FileExists as error:
            raise NotADirectory(f"{path!r} exists and is no directory") from error

    def remove(self, path: str) -> None:
        """Remove a file or tree, if it is there."""
        target = self.host(path)
        with typed_errors(path):
            if target.is_dir() and not target.is_symlink():
                shutil.rmtree(target)
            else:
                try:
                    target.unlink()
                except (FileNotFoundError, NotADirectoryError):
                    return

    async def pack(self, path: str) -> AsyncIterator[bytes]:
        """Stream a directory as a tar; sockets and the like, which a tar cannot hold, are left out."""
        source = self.host(path)
        with typed_errors(path):
            if not stat.S_ISDIR(source.stat().st_mode):
                raise NotADirectory(f"{path!r} is not a directory")
        with tempfile.TemporaryFile() as spool:
            with tarfile.open(fileobj=spool, mode="w", format=tarfile.PAX_FORMAT) as archive:
                archive.add(source, arcname=".", filter=_portable)
            spool.seek(0)
            while piece := spool.read(_CHUNK):
                yield piece
                await asyncio.sleep(0)

    async def unpack(self, path: str, data: AsyncIterable[bytes]) -> None:
        """Unpack a tar into a directory. Raises ArchiveEscape at the first member that would leave it."""
        target = self.host(path)
        self.mkdir(path)
        with tempfile.TemporaryFile() as spool:
            await _pour(data, spool)
            spool.seek(0)
            unpack_checked(spool, target)


def _portable(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return member if member.isreg() or member.isdir() or member.issym() or member.islnk() else None


AS_IT_IS: dict[str, Any] = {"filter": "fully_trusted"} if hasattr(tarfile, "fully_trusted_filter") else {}
"""Python before 3.11.4 knows no filters, and does the same without."""


def unpack_checked(archive: IO[bytes], target: Path) -> None:
    """Unpack, refusing what would leave `target`: absolute names, `..`, devices, links that lead out."""
    try:
        with tarfile.open(fileobj=archive, mode="r:") as opened:
            for member in opened:
                if posixpath.normpath(member.name) == ".":
                    continue
                _refuse_escape(member, target)
                opened.extract(member, target, **AS_IT_IS)
    except tarfile.ReadError as error:
        raise FileError(f"not a tar stream: {error}", hint="send an uncompressed tar") from error


def _refuse_escape(member: tarfile.TarInfo, target: Path) -> None:
    base = target.resolve()
    place = base / member.name
    parts = member.name.split("/")
    bad = member.name.startswith("/") or ".." in parts or not _inside(place.parent.resolve(), base)
    if member.issym():
        bad = bad or not _inside((place.parent / member.linkname).resolve(), base)
    elif member.islnk():
        bad = bad or not _inside((base / member.linkname).resolve(), base)
    elif not (member.isreg() or member.isdir()):
        bad = True
    if bad or (place.is_symlink() and not member.issym()):
        raise ArchiveEscape(
            f"archive member {member.name!r} would leave {target}",
            hint="pack the directory with names relative to it, without links that lead out",
        )


def _inside(path: Path, base: Path) -> bool:
    return path == base or base in path.parents


def _entry(host: Path, path: str, found: os.stat_result) -> FileEntry:
    kinds: list[tuple[bool, Literal["file", "directory", "symlink", "other"]]] = [
        (stat.S_ISREG(found.st_mode), "file"),
        (stat.S_ISDIR(found.st_mode), "directory"),
        (stat.S_ISLNK(found.st_mode), "symlink"),
        (True, "other"),
    ]
    kind = next(name for holds, name in kinds if holds)
    return FileEntry(
        name=posixpath.basename(path) or "/",
        path=path,
        kind=kind,
        size=found.st_size if kind == "file" else 0,
        mode=stat.S_IMODE(found.st_mode),
        modified=found.st_mtime,
        link=os.readlink(host) if kind == "symlink" else None,  # noqa: PTH115 - keeps odd bytes
        broken=kind == "symlink" and not host.exists(),
    )


async def _pour(data: bytes | AsyncIterable[bytes], file: IO[bytes]) -> None:
    if isinstance(data, bytes):
        source = io.BytesIO(data)
        while piece := source.read(_CHUNK):
            file.write(piece)
            await asyncio.sleep(0)
        return
    async for piece in data:
        file.write(piece)
