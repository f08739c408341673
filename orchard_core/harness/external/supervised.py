"""A program under its supervisor, as the driver sees it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchard_core.sandbox.unbroken import unbroken

_SUPERVISOR = Path(__file__).with_name("supervisor.py")
_PIECE = 64 << 10
_TAIL = 64 << 10
_END_S = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a program ended."""

    exit_code: int
    """Its own, or 128 + n for signal n."""
    stdout: bytes
    """The end of what it wrote to standard output, at most 64 KiB."""
    stderr: bytes
    """The end of what it wrote to standard error, at most 64 KiB."""


async def run_supervised(argv: Sequence[str], *, directory: Path, cwd: Path, env: Mapping[str, str]) -> Ended:
    """Run a program to its end, with this environment and no other.

    When it returns or is cancelled, nothing that the program started is left, and no death of this process,
    not even SIGKILL, leaves anything either; `directory` is removed when the program did not end by itself.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-I", "-S", str(_SUPERVISOR), str(directory), *argv),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=cwd,
        env=env,
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        stdout, stderr, code = await asyncio.gather(
            _tail(process.stdout), _tail(process.stderr), process.wait()
        )
    finally:
        process.stdin.close()
        await unbroken(asyncio.wait_for(process.wait(), _END_S))
    return Ended(exit_code=code, stdout=stdout, stderr=stderr)


async def _tail(stream: asyncio.StreamReader) -> bytes:
    """Everything is read, so that no program hangs on a full pipe; the end is kept."""
    kept = bytearray()
    while piece := await stream.read(_PIECE):
        kept += piece
        del kept[:-_TAIL]
    return bytes(kept)
