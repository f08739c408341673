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
_LAST_S = 1.0
"""So long an end waits for what the sandbox used at last."""


class UsageReader:
    """Asks for as long as it is not closed. A question is no use of a sandbox: it lives no longer by it."""

    def __init__(self, fleet: Fleet, accounts: Accounts, *, every_s: float) -> None:
        self._fleet = fleet
        self._accounts = accounts
        self._every_s = every_s
        self._room = asyncio.Semaphore(_AT_ONCE)
        self._asking: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin; from now on a sandbox is asked once more before it is destroyed."""
        self._fleet.before_end = self._last
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
        async with self._room:
            await self._asked(entry, _PATIENCE_S)

    async def _last(self, entry: Entry) -> None:
        if self._accounts.counts(entry.id):
            await self._asked(entry, _LAST_S)

    async def _asked(self, entry: Entry, patience_s: float) -> None:
        try:
            async with asyncio.timeout(patience_s):
                sandbox = entry.sandbox
                if isinstance(sandbox, AgentSandbox):
                    self._accounts.used(entry.id, (await sandbox.metrics()).commands_cpu)
        except (OrchardError, TimeoutError):
            return  # it is gone, or too busy to tell; the next time it tells of both
