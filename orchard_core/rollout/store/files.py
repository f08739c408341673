"""The few file operations the store is made of: the seam where tests cut the power."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path
from typing import Protocol

from orchard_core.errors import RunLocked, StoreError


class Appender(Protocol):
    """A file that only grows, or is cut."""

    @property
    def size(self) -> int:
        """Bytes so far."""

    def write(self, data: bytes) -> None:
        """Add bytes at the end, all of them."""

    def sync(self) -> None:
        """Return when everything written is on the disk."""

    def truncate(self, size: int) -> None:
        """Cut to `size` bytes."""

    def close(self) -> None:
        """Give the descriptor back."""


class Lock(Protocol):
    """Held until released or until the process ends."""

    def release(self) -> None:
        """Let others in."""


class Files(Protocol):
    """Where a store lives. Any method may raise OSError."""

    def append(self, path: Path) -> Appender:
        """Open for appending, made if missing."""

    def replace(self, source: Path, target: Path) -> None:
        """Rename over whatever is there."""

    def remove(self, path: Path) -> None:
        """Delete a file; fine when missing."""

    def make_dir(self, path: Path) -> None:
        """Make a directory and its parents; fine when it exists."""

    def sync_dir(self, path: Path) -> None:
        """Return when the directory's entries are on the disk."""

    def lock(self, path: Path) -> Lock:
        """Become the only writer. Raises RunLocked."""


class DiskAppender:
    """An appender on a real file."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._size = os.fstat(self._fd).st_size

    @property
    def size(self) -> int:
        """Bytes so far."""
        return self._size

    def write(self, data: bytes) -> None:
        """Add bytes at the end, all of them."""
        view = memoryview(data)
        while view:
            count = os.write(self._fd, view)
            self._size += count
            view = view[count:]

    def sync(self) -> None:
        """fdatasync: the bytes and the size."""
        os.fdatasync(self._fd)

    def truncate(self, size: int) -> None:
        """Cut to `size` bytes."""
        os.ftruncate(self._fd, size)
        self._size = size

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._fd)


class DiskLock:
    """An flock, which the kernel drops when its holder dies."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(self._fd, 32, 0).decode("ascii", "replace").strip()
            os.close(self._fd)
            if error.errno not in {errno.EAGAIN, errno.EACCES}:
                raise StoreError(
                    f"{path} cannot be locked: {error}", hint="use a local file system"
                ) from error
            raise RunLocked(
                f"{path.parent} is being written by process {holder or 'unknown'}",
                hint="wait for it to end, or choose another --out",
            ) from None
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        """Let others in."""
        os.close(self._fd)


class DiskFiles:
    """The real thing."""

    def append(self, path: Path) -> Appender:
        """Open for appending, made if missing."""
        return DiskAppender(path)

    def replace(self, source: Path, target: Path) -> None:
        """Rename over whatever is there."""
        source.replace(target)

    def remove(self, path: Path) -> None:
        """Delete a file; fine when missing."""
        path.unlink(missing_ok=True)

    def make_dir(self, path: Path) -> None:
        """Make a directory and its parents; fine when it exists."""
        path.mkdir(parents=True, exist_ok=True)

    def sync_dir(self, path: Path) -> None:
        """fsync of the directory."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def lock(self, path: Path) -> Lock:
        """Become the only writer. Raises RunLocked."""
        return DiskLock(path)


def write_whole(files: Files, path: Path, data: bytes) -> None:
    """Write a file so that it is seen whole or not at all, and is durable on return."""
    part = path.with_name(f".{path.name}.part")
    files.remove(part)
    out = files.append(part)
    try:
        out.write(data)
        out.sync()
    finally:
        out.close()
    files.replace(part, path)
    files.sync_dir(path.parent)
