"""Which sandboxes ever sent a heartbeat, and which of them fell silent."""

from __future__ import annotations

import time
from typing import Protocol


class Heartbeats(Protocol):
    """Kept apart, because several replicas must agree on it. Each method may raise SandboxUnavailable."""

    async def beat(self, sandbox_id: str) -> None:
        """One came."""

    async def overdue(self, limit_s: float) -> list[str]:
        """Sandboxes whose last one is older than `limit_s` seconds, by a clock that never steps; only where
        this process is the one that reaps."""

    async def forget(self, sandbox_id: str) -> None:
        """The sandbox is gone; fine when nothing is known of it."""


class OwnHeartbeats:
    """Honours `Heartbeats` for one process. A restart forgets, and so spares, what fell silent before."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}

    async def beat(self, sandbox_id: str) -> None:
        """See Heartbeats."""
        self._last[sandbox_id] = time.monotonic()

    async def overdue(self, limit_s: float) -> list[str]:
        """See Heartbeats."""
        now = time.monotonic()
        return [sandbox_id for sandbox_id, last in self._last.items() if now - last > limit_s]

    async def forget(self, sandbox_id: str) -> None:
        """See Heartbeats."""
        self._last.pop(sandbox_id, None)
