"""What sandboxes really use, asked of their agents once in a while."""

from __future__ import annotations

import asyncio

from orchard_core import AgentSandbox, OrchardError
from orchard_env.service.ending import ended
from orchard_env.service.entry import Entry
from orchard_env.service.fleet import Fleet
from orchard_env.service.observe.accounts import Accounts

_AT_ONCE = 16
_PATIENCE_S = 5.0


class UsageReader:
    """Asks for as long as it is not closed. A question is no use of a sandbox: it lives no longer by it."""

    def __init__(self, fleet: Fleet, accounts: Accounts, *, every_s: float) -> None:
        self._fleet = fleet
        self._accounts = accounts
        self._every_s = every_s
        self._room = asyncio.Semaphore(_AT_ONCE)
        self._asking: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin."""
        self._asking = asyncio.create_task(self._go_on(), name="usage")

    async def close(self) -> None:
        """End."""
        await ended(self._asking)

    async def _go_on(self) -> None:
        while True:
            await asyncio.sleep(self._every_s)
            await self.ask()

    async def ask(self) -> None:
        """Every sandbox that is counted, once. What one of them answers wrongly is its own affair."""
        counted = [entry for entry in self._fleet.known() if self._accounts.counts(entry.id)]
        await asyncio.gather(*(self._ask(entry) for entry in counted), return_exceptions=True)

    async def _ask(self, entry: Entry) -> None:
        try:
            async with self._room, asyncio.timeout(_PATIENCE_S):
                sandbox = entry.sandbox
                if isinstance(sandbox, AgentSandbox):
                    self._accounts.used(entry.id, (await sandbox.metrics()).commands_cpu)
        except (OrchardError, TimeoutError):
            return  # it is gone, or too busy to tell; the next time it tells of both
