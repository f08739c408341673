"""The snapshots that stand in a tenant's name, counted and bounded."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable

from orchard_core import QuotaExceeded, Snapshot, unbroken
from orchard_env.service.state.contract import Ledgers
from orchard_env.service.state.memory import MemoryState
from orchard_env.service.state.values import Amounts, Full

_MIB = 1 << 20
_WORDS = ("snapshots", "MiB of snapshots")


def _boundless(tenant: str) -> Amounts:
    return (-1, -1)


class SavedFiles:
    """Kept where quotas are: with Redis over all replicas and their ends, else for as long as the process
    lives, and longer no snapshot's name is understood either."""

    def __init__(self, ledgers: Ledgers | None = None, limits: Callable[[str], Amounts] = _boundless) -> None:
        """`limits` tells how many snapshots, and how many bytes of them, a tenant may have; -1: any."""
        self._ledgers = ledgers or MemoryState().ledgers
        self._limits = limits

    async def kept(
        self,
        tenant: str,
        save: Callable[[], Awaitable[Snapshot]],
        discard: Callable[[Snapshot], Awaitable[None]],
    ) -> Snapshot:
        """What `save` saves, counted; one that turns out to be too large is discarded. Raises QuotaExceeded,
        at once where there is no room for any."""
        place = f"saving-{secrets.token_hex(8)}"
        await self._hold(tenant, place, 1)
        try:
            saved = await save()
        finally:
            await unbroken(self._ledgers.drop(_ledger(tenant), place))
        try:
            await self._hold(tenant, saved.id, max(1, saved.size))
        except BaseException:
            await unbroken(discard(saved))
            raise
        return saved

    async def gone(self, tenant: str, snapshot_id: str) -> None:
        """It was discarded; fine when it was not counted."""
        await self._ledgers.drop(_ledger(tenant), snapshot_id)

    async def of(self, tenant: str) -> list[Snapshot]:
        """Those that are counted, by the provider's name; whose provider is not said."""
        found = await self._ledgers.read(_ledger(tenant))
        return [
            Snapshot(id=name, provider="", size=amounts[1])
            for name, amounts in sorted(found.entries.items())
            if not name.startswith("saving-")
        ]

    async def _hold(self, tenant: str, name: str, size: int) -> None:
        full = await self._ledgers.hold(_ledger(tenant), name, (1, size), self._limits(tenant))
        if full is not None:
            raise _refusal(tenant, full, size)


def _ledger(tenant: str) -> str:
    return f"snapshots:{tenant}"


def _refusal(tenant: str, full: Full, size: int) -> QuotaExceeded:
    per = _MIB if full.index else 1
    asked = f"this one has {-(-size // _MIB)} MiB" if full.index else "this is one more"
    has = f"{-(-full.used // per)} of {full.limit // per} {_WORDS[full.index]}"
    return QuotaExceeded(
        f"tenant {tenant} has {has}, and {asked}",
        hint="discard those that are done (GET /v2/snapshots lists them), or ask the operator for more",
    )
