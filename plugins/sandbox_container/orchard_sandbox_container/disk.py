"""The limit of a container's writable layer, where the engine has none: it is measured."""

from __future__ import annotations

import asyncio
import contextlib
import resource
from typing import Protocol

from orchard_core import SandboxError
from orchard_sandbox_container.engine import Engine

_FIRST_S = 1.0
_LONGEST_S = 10.0


class Limited(Protocol):
    """What is watched."""

    container: str
    """The engine's id of it."""

    async def overflow(self, used: int, limit: int) -> None:
        """End it."""


def limit_files(pid: int, limit: int) -> None:
    """Have no single file outgrow the limit, at once, where this driver may say so. Through the engine it
    would replace all other limits that its operator has set."""
    with contextlib.suppress(OSError, ValueError):
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (limit, limit))


async def watch_disk(engine: Engine, container: Limited, limit: int) -> None:
    """End the container when its layer holds more than `limit` bytes. It is looked at every few seconds:
    often while it grows, seldom while it rests, because the engine walks the whole layer each time."""
    pause, before = _FIRST_S, 0
    while True:
        await asyncio.sleep(pause)
        try:
            found = await engine.get(f"/containers/{container.container}/json", {"size": "true"})
        except SandboxError:
            pause = _LONGEST_S
            continue
        used = int(found.get("SizeRw") or 0)
        if used > limit:
            await container.overflow(used, limit)
            return
        pause = _FIRST_S if used != before else min(2 * pause, _LONGEST_S)
        before = used
