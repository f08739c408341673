"""Files and directories that appear whole or not at all, and never in the place of another."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from orchard_core.errors import DatasetExists, DatasetLocked, DatasetNotFound, FormatUnsupported

_HINT = "choose another path, or remove what is there"
_OF_FILES = (
    ".json", ".jsonl", ".csv", ".tsv", ".txt", ".parquet", ".arrow", ".gz", ".zst", ".zip", ".tar", ".xz"
)  # fmt: skip


def must_exist(path: Path) -> None:
    """Raises DatasetNotFound."""
    if not path.exists():
        raise DatasetNotFound(f"there is nothing at {path}", hint="look for a misspelt path")


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """Write beside `path` under a name of its own, which a killed process leaves and the next one takes over;
    on a good end the file is synced and gets its name.

    Raises DatasetExists, DatasetLocked while another process writes there, and OSError.
    """
    partial = _begun(path)
    with partial.open("ab") as file:
        _lock(file.fileno(), path)
        file.truncate(0)
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            _publish_file(partial, path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
    _sync(path.parent)


@contextmanager
def new_directory(path: Path) -> Iterator[Path]:
    """The same for a directory: fill the one that is given. Raises FormatUnsupported for a file's name."""
    if path.name.lower().endswith(_OF_FILES):
        raise FormatUnsupported(
            f"{path.name[-80:]!r} is the name of a file that this format cannot write",
            hint="a directory has a name without an ending; the page on dataset formats lists the files",
        )
    partial = _begun(path)
    partial.mkdir(exist_ok=True)
    handle = os.open(partial, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _lock(handle, path)
        _empty(partial)
        try:
            yield partial
            for found in [*partial.rglob("*"), partial]:
                _sync(found)
            if path.exists() or path.is_symlink():
                raise _there(path)
            partial.rename(path)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
    finally:
        os.close(handle)
    _sync(path.parent)


def _begun(path: Path) -> Path:
    if path.exists() or path.is_symlink():
        raise _there(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.with_name(f".{path.name}.partial")


def _there(path: Path) -> DatasetExists:
    return DatasetExists(f"{path} is there already; nothing of it was touched", hint=_HINT)


def _lock(handle: int, path: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise DatasetLocked(
            f"another process is writing {path}", hint="wait for its end, or choose another path"
        ) from None


def _publish_file(partial: Path, path: Path) -> None:
    try:
        os.link(partial, path)
    except FileExistsError:
        raise _there(path) from None
    except OSError:  # a file system without hard links
        if path.exists():
            raise _there(path) from None
        partial.rename(path)
        return
    partial.unlink()


def _empty(folder: Path) -> None:
    for found in folder.iterdir():
        if found.is_dir() and not found.is_symlink():
            shutil.rmtree(found)
        else:
            found.unlink()


def _sync(path: Path) -> None:
    with suppress(OSError):  # some file systems do not sync directories
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
