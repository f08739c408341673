"""Holding a sandbox to its disk limit by measuring, as an unprivileged user can set no quota."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from orchard_core.sandbox.agent_sandbox import AgentSandbox

_PAUSE_S = 2.0
_DUTY = 20.0
"""A measurement that takes long is repeated seldom: at most one part in this many of the time."""


async def watch_disk(sandbox: AgentSandbox, path: Path, limit: int) -> None:
    """Destroy the sandbox when its writable layers outgrow `limit` bytes."""
    while True:
        started = time.monotonic()
        used = await measure(path)
        if used > limit:
            await sandbox.end(
                f"sandbox {sandbox.id} was destroyed: its files take {used >> 20} MiB of disk, "
                f"more than its limit of {limit >> 20} MiB"
            )
            return
        await asyncio.sleep(max(_PAUSE_S, _DUTY * (time.monotonic() - started)))


async def measure(path: Path) -> int:
    """Bytes on disk below `path`; files that vanish or hide meanwhile count as nothing."""
    try:
        process = await asyncio.create_subprocess_exec(
            "du", "-skx", "--", str(path),
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
    except OSError:  # the driver is short of descriptors or processes for a while: the limit still stands
        return 0
    try:
        output, _ = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        raise
    first = output.split()
    return int(first[0]) * 1024 if first and first[0].isdigit() else 0
