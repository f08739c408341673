"""Looking at a task directory that somebody else made, without trusting it."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from orchard_core.errors import TaskInvalid

TEXT_LIMIT = 4 << 20
"""Bytes that an instruction, a task.toml or a script may have."""
MAX_FILES = 50_000
"""Files a task directory may have."""


def digest_tree(root: Path, *, max_mb: int) -> str:
    """Hash of every name, kind, executable bit and byte under `root`.

    Raises TaskInvalid for anything that must not be uploaded: links that leave `root`, devices, pipes,
    unreadable files, or more than `max_mb` MiB in all.
    """
    total = hashlib.sha256()
    left = max_mb << 20
    for count, (name, path) in enumerate(_walk(root)):
        if count >= MAX_FILES:
            raise TaskInvalid(f"{root} has more than {MAX_FILES} files", hint="put bulk data into an image")
        kind, size, content = _fingerprint(root, path, left, max_mb)
        left -= size
        total.update(b"%d:%s %s " % (len(name), name, kind) + content)
    return total.hexdigest()


def _walk(root: Path) -> Iterator[tuple[bytes, Path]]:
    def unreadable(error: OSError) -> None:
        raise TaskInvalid(f"{printable(error.filename)} cannot be read: {error.strerror}") from error

    for directory, names, files in os.walk(root, onerror=unreadable):
        names.sort()
        base = Path(directory)
        linked = [name for name in names if (base / name).is_symlink()]
        for name in sorted([*files, *linked]):
            path = base / name
            yield os.fsencode(path.relative_to(root)), path


def _fingerprint(root: Path, path: Path, left: int, max_mb: int) -> tuple[bytes, int, bytes]:
    try:
        info = path.lstat()
        if stat.S_ISLNK(info.st_mode):
            return b"link", 0, _link(root, path)
        if not stat.S_ISREG(info.st_mode):
            raise TaskInvalid(
                f"{printable(path)} is a device, pipe or socket", hint="a task holds plain files only"
            )
        if info.st_size > left:
            raise TaskInvalid(
                f"{root} holds more than {max_mb} MiB", hint="raise max_mb, or put bulk data into an image"
            )
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").digest()
        return (b"exec" if info.st_mode & stat.S_IXUSR else b"file"), info.st_size, content
    except OSError as error:
        raise TaskInvalid(f"{printable(path)} cannot be read: {error.strerror}") from error


def _link(root: Path, path: Path) -> bytes:
    target = path.readlink()
    end = Path(os.path.realpath(path))  # unlike Path.resolve, which may raise where links go in circles
    inside = not target.is_absolute() and end.is_relative_to(root.resolve())
    if not inside:
        raise TaskInvalid(
            f"{printable(path)} is a link that leaves the task directory",
            hint="replace it by the file itself",
        )
    return os.fsencode(target)


def read_text(path: Path) -> tuple[str, str]:
    """A text file, and a remark when its encoding was odd. UTF-8 and UTF-16 byte-order marks are dropped.

    Raises TaskInvalid when it is missing, not a regular file or larger than TEXT_LIMIT.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise TaskInvalid(f"{printable(path)} is not a regular file")
        if path.stat().st_size > TEXT_LIMIT:
            raise TaskInvalid(f"{printable(path)} is larger than {TEXT_LIMIT >> 20} MiB")
        data = path.read_bytes()
    except OSError as error:
        raise TaskInvalid(f"{printable(path)} cannot be read: {error.strerror}") from error
    encoding = "utf-16" if data[:2] in {b"\xff\xfe", b"\xfe\xff"} else "utf-8-sig"
    try:
        return data.decode(encoding), "" if encoding == "utf-8-sig" else f"{path.name} is UTF-16"
    except UnicodeDecodeError:
        return data.decode(encoding, "replace"), f"{path.name} is not UTF-8; odd bytes became U+FFFD"


def printable(path: Path | str) -> str:
    """A path for messages: control characters and undecodable bytes are escaped."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(path))
