"""Heartbeats of a driver for its sandboxes: when it dies, they stop, and the service destroys them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from orchard_core import OrchardError, SandboxGone
from orchard_env.remote.service import RemoteService

_AT_ONCE = 16


class Heartbeats:
    """One task for all sandboxes of a provider."""

    def __init__(self, service: RemoteService, *, every_s: float) -> None:
        self._service = service
        self._every_s = every_s
        self._kept: dict[str, Callable[[SandboxGone], None]] = {}
        self._task: asyncio.Task[None] | None = None

    async def keep(self, sandbox_id: str, on_gone: Callable[[SandboxGone], None]) -> None:
        """Begin with the first, at once: a driver that dies now leaves nothing. `on_gone` is told when the
        service says that the sandbox is dead."""
        self._kept[sandbox_id] = on_gone
        await self._beat(sandbox_id)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._go_on())

    def leave(self, sandbox_id: str) -> None:
        """It needs no more."""
        self._kept.pop(sandbox_id, None)

    async def close(self) -> None:
        """Send no more for any."""
        self._kept.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _go_on(self) -> None:
        while True:
            await asyncio.sleep(self._every_s)
            room = asyncio.Semaphore(_AT_ONCE)

            async def one(sandbox_id: str, room: asyncio.Semaphore = room) -> None:
                async with room:
                    await self._beat(sandbox_id)

            await asyncio.gather(*(one(sandbox_id) for sandbox_id in list(self._kept)))

    async def _beat(self, sandbox_id: str) -> None:
        try:
            with suppress(OrchardError):  # the next may come through; calls will tell what is wrong
                try:
                    await self._service.beat(sandbox_id)
                except SandboxGone as error:
                    on_gone = self._kept.pop(sandbox_id, None)
                    if on_gone is not None:
                        on_gone(error)
        except RuntimeError:  # the loop is being closed
            self._kept.pop(sandbox_id, None)
