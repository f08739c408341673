"""What of the host's /usr not everybody may read stays out of sandboxes.

A sandbox's root is the driver's own user outside. Where that is host root, the kernel would let it read every
file of root's, so these are looked for once a process and covered: files without read permission for others,
directories that others may not list and enter. A file that is closed while the driver runs is seen as it was.
"""

from __future__ import annotations

import os
import shutil
import stat
import threading
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_OTHERS_READ = 0o004
_OTHERS_ENTER = 0o005


@dataclass(frozen=True, slots=True, kw_only=True)
class Veil:
    """Covers the private parts of one directory of the host."""

    directory: Path
    """A layer for an overlay, laid between the host's files and the sandbox's own."""
    files: tuple[str, ...]
    """What it covers, relative to the directory of the host."""
    directories: tuple[str, ...]
    """Likewise."""


class Veils:
    """One driver's veils, made when the first sandbox needs them."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._made: dict[Path, Veil | None] = {}
        self._making = threading.Lock()

    def over(self, name: str, source: Path) -> Veil | None:
        """The veil for `source`, None where everything may be shown. Blocking; the first time in a process
        it takes about 5 s for a million files."""
        if os.geteuid() != 0:
            return None  # the kernel refuses an ordinary user inside what it refuses him outside
        with self._making:
            if source not in self._made:
                self._made[source] = _raise(self._home / name, source)
            return self._made[source]


def _raise(directory: Path, source: Path) -> Veil | None:
    found = private_paths(source)
    if not found:
        return None
    for path in found:
        cover = directory / path.relative_to(source)
        with suppress(FileNotFoundError):  # it has gone since, and with it what was to be hidden
            _ancestors(cover, directory, source)
            _cover(cover)
    files = tuple(str(path.relative_to(source)) for path in found if not path.is_dir())
    directories = tuple(str(path.relative_to(source)) for path in found if path.is_dir())
    return Veil(directory=directory, files=files, directories=directories)


def _ancestors(cover: Path, directory: Path, source: Path) -> None:
    """A directory of the upper layer hides the lower one's attributes: it gets the same."""
    for parent in reversed(cover.relative_to(directory).parents):
        made, original = directory / parent, source / parent
        if not made.is_dir():
            made.mkdir(parents=True)
            info = original.stat()
            os.chown(made, info.st_uid, info.st_gid)
            shutil.copystat(original, made)


def _cover(path: Path) -> None:
    """A whiteout, which makes a name vanish; or an empty file, where the host forbids making one."""
    try:
        os.mknod(path, stat.S_IFCHR, os.makedev(0, 0))
    except OSError:
        path.touch(0o000)


@cache
def private_paths(top: Path) -> tuple[Path, ...]:
    """Every file and directory below `top` that others may not read; nothing below such a directory."""
    found: list[Path] = []
    waiting = [str(top)]
    while waiting:
        try:
            entries = list(os.scandir(waiting.pop()))
        except OSError:  # it has just gone
            continue
        for entry in entries:
            mode = _mode(entry)
            if stat.S_ISDIR(mode) and mode & _OTHERS_ENTER == _OTHERS_ENTER:
                waiting.append(entry.path)
            elif stat.S_ISDIR(mode) or not mode & _OTHERS_READ:
                found.append(Path(entry.path))
    return tuple(found)


def _mode(entry: os.DirEntry[str]) -> int:
    """One that vanishes meanwhile counts as closed."""
    try:
        return entry.stat(follow_symlinks=False).st_mode
    except OSError:
        return 0
