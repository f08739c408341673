"""Heartbeats of sandboxes, known to all replicas; one of them destroys what fell silent."""

from __future__ import annotations

from orchard_env.service.leader.contract import Leadership
from orchard_env.service.state.contract import Beats


class SharedHeartbeats:
    """Honours `Heartbeats`."""

    def __init__(self, beats: Beats, leadership: Leadership) -> None:
        self._beats = beats
        self._leadership = leadership

    async def beat(self, sandbox_id: str) -> None:
        """See Heartbeats."""
        await self._beats.beat(sandbox_id)

    async def overdue(self, limit_s: float) -> list[str]:
        """See Heartbeats. Each was claimed: no other replica destroys it, even one that thinks it leads."""
        if not self._leadership.leading:
            return []
        silent = await self._beats.silent(limit_s)
        return [sandbox_id for sandbox_id in silent if await self._leadership.claim(sandbox_id)]

    async def forget(self, sandbox_id: str) -> None:
        """See Heartbeats."""
        await self._beats.forget(sandbox_id)
