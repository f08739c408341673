"""A replica's sign of life, and what it tells the others with it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

import orjson

from orchard_env.service.ending import ended
from orchard_env.service.state.contract import SharedState
from orchard_env.service.state.values import StateUnavailable

_LOG = logging.getLogger("orchard.service.replicas")

Told = Callable[[], Mapping[str, int | str]]
"""What to tell, as it is now."""


class Presence:
    """Beats for as long as the process lives."""

    def __init__(self, state: SharedState, replica: str, told: Told, *, lasts_s: float = 10.0) -> None:
        self._state = state
        self._replica = replica
        self._told = told
        self._lasts_s = lasts_s
        self._others: frozenset[str] = frozenset()
        self._beating: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Be alive from now on."""
        await self.beat()
        self._beating = asyncio.create_task(self._go_on(), name="presence")

    async def close(self) -> None:
        """Be gone at once."""
        await ended(self._beating)
        try:
            await self._state.replicas.leave(self._replica)
        except StateUnavailable as error:
            _LOG.info("this replica leaves without a word: %s", error.message)

    async def beat(self) -> None:
        """Give one sign of life, now."""
        try:
            await self._state.replicas.beat(self._replica, orjson.dumps(self._told()), self._lasts_s)
            self._notice(frozenset(await self._state.replicas.alive()) - {self._replica})
        except StateUnavailable as error:
            _LOG.debug("no sign of life: %s", error.message)

    async def _go_on(self) -> None:
        while True:
            await asyncio.sleep(self._lasts_s / 4)
            await self.beat()

    def _notice(self, others: frozenset[str]) -> None:
        for replica in sorted(others - self._others):
            _LOG.info("another replica is there: %s", replica)
        for replica in sorted(self._others - others):
            _LOG.warning("a replica is gone: %s; what it had to do is done by those that are left", replica)
        self._others = others
