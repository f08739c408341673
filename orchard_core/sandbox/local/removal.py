"""Deletion of what hostile programs left: odd modes, deep nests, links, mounts."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

_PATIENCE_S = 120.0
_DYING_S = 3.0
"""For how long a tree may grow again under its removal: a killed program's children end by and by."""


def remove_tree(path: Path) -> bool:
    """Delete a tree without following links; True when nothing is left.

    Directories without permissions are opened up first. What Python cannot walk (nests deeper than its
    stack) is left to chmod and rm, which can. Programs that are dying may still write: the tree is removed
    again until it stays away, for `_DYING_S` at most.
    """
    end = time.monotonic() + _DYING_S
    while not _removed(path):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def _removed(path: Path) -> bool:
    try:
        shutil.rmtree(path, onerror=_open_up)
    except (OSError, RecursionError):
        if os.path.lexists(path):
            _remove_by_rm(path)
    return not os.path.lexists(path)


def _open_up(retry: Callable[..., object], name: str, _error: object) -> None:
    """Give the owner his rights back on the entry and on its directory, then try once more."""
    target = Path(name)
    if not os.path.lexists(target):
        return
    for entry in (target.parent, target):
        if stat.S_ISDIR(entry.lstat().st_mode):
            entry.chmod(0o700)
    if stat.S_ISDIR(target.lstat().st_mode):
        shutil.rmtree(target)
    else:
        target.unlink()


def _remove_by_rm(path: Path) -> None:
    for command in (
        ["chmod", "-R", "u+rwX", "--", str(path)],
        ["rm", "-rf", "--one-file-system", "--", str(path)],
    ):
        try:
            subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=_PATIENCE_S
            )
        except (OSError, subprocess.TimeoutExpired):
            return
