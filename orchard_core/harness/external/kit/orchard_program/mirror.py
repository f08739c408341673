"""A local copy of a piece of the sandbox, for tools that know local files only."""

from __future__ import annotations

import posixpath
import shutil
from pathlib import Path

from orchard_program.sandbox import Sandbox

_ENTRIES = 5000


def mirror(sandbox: Sandbox, path: str, root: Path, *, depth: int, largest: int) -> Path:
    """Make `root` hold a copy of what is at the absolute `path` inside, under the same path, and only that.

    Of a directory, the names to `depth` levels, files empty. A file of more than `largest` bytes becomes a
    hole of its size. Where nothing is, the directory to put a new file in, if there is one. No link is made.
    """
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    path = posixpath.normpath("/" + path.lstrip("/"))
    local = root / path[1:]
    entry = sandbox.stat(path)
    if entry is None:
        parent = sandbox.stat(posixpath.dirname(path))
        if parent is not None and parent.kind == "directory":
            local.parent.mkdir(parents=True, exist_ok=True)
    elif entry.kind == "directory":
        _names(sandbox, path, local, depth)
    elif entry.kind == "file":
        local.parent.mkdir(parents=True, exist_ok=True)
        if entry.size <= largest:
            local.write_bytes(sandbox.read(path))
        else:
            with local.open("wb") as hole:
                hole.truncate(entry.size)
    return local


def _names(sandbox: Sandbox, path: str, local: Path, depth: int) -> None:
    local.mkdir(parents=True, exist_ok=True)
    for entry in sandbox.list(path)[:_ENTRIES] if depth else ():
        inner = posixpath.join(path, entry.name)
        target = sandbox.stat(inner) if entry.kind == "symlink" else entry
        if target is not None and target.kind == "directory":
            _names(sandbox, inner, local / entry.name, depth - 1)
        else:
            (local / entry.name).touch()
