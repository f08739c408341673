"""Directories for tasks that are generated or converted while a program runs."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path

from orchard_core.errors import ConfigError


class ScratchDirectory:
    """A temporary directory that goes with this object, or at the program's end.

    A program that is killed cannot remove its own: the next one that makes one does. Each is locked while its
    program lives, and the system gives up a dead program's locks.
    """

    def __init__(self, *, parent: Path | None = None):
        """Made below `parent`, by default a directory of this user's below the system's temporary one. Raises
        ConfigError when that is someone else's."""
        root = parent or Path(tempfile.gettempdir()) / f"orchard-tasks-{os.geteuid()}"
        _own(root)
        with _locked(root):
            _remove_abandoned(root)
            self.path = Path(tempfile.mkdtemp(dir=root))
            """The directory, absolute."""
            lock = os.open(self.path, os.O_RDONLY)
            fcntl.flock(lock, fcntl.LOCK_EX)
        self._finalizer = weakref.finalize(self, _remove, self.path, lock)

    def remove(self) -> None:
        """Remove it now. May be repeated."""
        self._finalizer()


def _own(root: Path) -> None:
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    info = root.lstat()
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid() or info.st_mode & 0o022:
        raise ConfigError(
            f"{root} is not a directory that this user alone can write to",
            hint="remove it, or set TMPDIR to another directory",
        )


@contextlib.contextmanager
def _locked(root: Path) -> Iterator[None]:
    descriptor = os.open(root, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _remove_abandoned(root: Path) -> None:
    for path in root.iterdir():
        try:
            lock = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            continue  # its program ended just now
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
        except BlockingIOError:
            pass  # its program lives
        finally:
            os.close(lock)


def _remove(path: Path, lock: int) -> None:
    shutil.rmtree(path, ignore_errors=True)
    os.close(lock)
