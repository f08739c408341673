"""Copying the writable layers of sandboxes, by the agent's own program.

The copy is a plain one into the layers of the new sandbox, shared blocks where the file system can. Showing
one frozen copy to all as one more layer of their overlays would be quicker still, but not the same place:
without privilege an overlay cannot rename a directory of a lower layer, and breaks hard links there.

The program runs in namespaces of its own and sees the state directory of this driver and nothing else, so
that what hostile names and links lead to does not exist. Its user is root there, over this user's files only:
files without any permission are copied too.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from orchard_core.errors import DiskFull, SandboxError
from orchard_core.sandbox.unbroken import unbroken

_NO_SPACE = 3
_WORDS_MAX = 2000
_CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cloned:
    """What was copied."""

    files: int
    """Entries of every kind."""
    bytes: int
    """On disk."""
    skipped: int
    """Devices, which cannot be made."""
    changed: int
    """Entries that went or became something else meanwhile: none where everything could be stopped."""


class Cloning:
    """One copy of some directories, made once, which can be stopped by another task."""

    def __init__(self, bwrap: Path, agent: Path, home: Path) -> None:
        """`home`: the directory below which everything lies."""
        self._bwrap = bwrap
        self._agent = agent
        self._home = home
        self._process: asyncio.subprocess.Process | None = None
        self._stopped = False

    async def run(self, trees: Sequence[tuple[Path, Path]]) -> Cloned:
        """Copy each first directory to the second, which must not exist. When it returns, or raises, nothing
        of it runs; what was made is left to the caller. Raises DiskFull, SandboxError."""
        process = await asyncio.create_subprocess_exec(
            *self._command(trees), env={}, cwd="/", stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        self._process = process
        if self._stopped:
            self.stop()
        reading = asyncio.ensure_future(process.communicate())
        try:
            output, words = await asyncio.shield(reading)
        except asyncio.CancelledError:
            self.stop()
            await unbroken(asyncio.wait([reading]))  # the output ends when the last of its processes has
            raise
        return _read(process.returncode, output, words)

    def stop(self) -> None:
        """Let `run` fail; fine at any time."""
        self._stopped = True
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    def _command(self, trees: Sequence[tuple[Path, Path]]) -> list[str]:
        command = [str(self._bwrap), "--unshare-all", "--unshare-user", "--die-with-parent", "--new-session"]
        command += ["--as-pid-1", "--uid", "0", "--gid", "0", "--cap-drop", "ALL"]
        for name in _CAPABILITIES:
            command += ["--cap-add", f"CAP_{name}"]
        command += ["--ro-bind", str(self._agent), "/clone", "--bind", str(self._home), "/state"]
        command += ["--", "/clone", "clone"]
        for pair in trees:
            command += [f"/state/{path.relative_to(self._home)}" for path in pair]
        return command


def _read(code: int | None, output: bytes, words: bytes) -> Cloned:
    said = words[-_WORDS_MAX:].decode("utf-8", "replace").strip()
    if code == _NO_SPACE:
        raise DiskFull(
            f"the files of the sandbox could not be copied: {said}",
            hint="discard snapshots, close sandboxes, or set ORCHARD_STATE_DIR to a larger disk",
        )
    if code != 0:
        raise SandboxError(f"the files of the sandbox could not be copied: {said or f'exit {code}'}")
    return Cloned(**json.loads(output))
