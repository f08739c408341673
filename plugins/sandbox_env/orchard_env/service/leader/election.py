"""One replica leads for as long as it keeps its grip."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress

from orchard_core import OrchardError
from orchard_env.service.ending import ended
from orchard_env.service.leader.contract import Grip

_LOG = logging.getLogger("orchard.service.leader")
_MARGIN = 0.2
"""The part of a term that is not used: a call that was begun in time must end in time, too."""


class Election:
    """Honours `Leadership`."""

    def __init__(
        self, grip: Grip, holder: str, *, ttl_s: float = 15.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`holder`: this replica's name, unlike any other's. A dead leader is followed after `ttl_s`."""
        self._grip = grip
        self._holder = holder
        self._ttl_s = ttl_s
        self._clock = clock
        self._term: int | None = None
        self._until = 0.0
        self._unheard = False
        self._standing: asyncio.Task[None] | None = None

    @property
    def leading(self) -> bool:
        """See Leadership."""
        return self._term is not None and self._clock() < self._until

    @property
    def term(self) -> int | None:
        """The number of its term; None while another leads."""
        return self._term if self.leading else None

    async def claim(self, item: str) -> bool:
        """See Leadership."""
        term = self.term
        if term is None:
            return False
        try:
            sure = await self._grip.confirm(self._holder, term, item, 2 * self._ttl_s)
        except OrchardError as error:
            _LOG.warning("nothing is reaped, because nobody can say who leads: %s", error.message)
            return False
        return sure and self.term == term

    async def start(self) -> None:
        """See Leadership."""
        self._standing = asyncio.create_task(self._stand(), name="election")

    async def stop(self) -> None:
        """See Leadership."""
        await ended(self._standing)
        term, self._term = self._term, None
        if term is not None:
            with suppress(OrchardError):
                await self._grip.let_go(self._holder, term)

    async def _stand(self) -> None:
        while True:
            await self.ask()
            await asyncio.sleep(self._ttl_s / 4)

    async def ask(self) -> None:
        """Ask once, as `start` does again and again."""
        asked = self._clock()
        try:
            term = await self._grip.grasp(self._holder, self._ttl_s)
        except OrchardError as error:
            if not self._unheard:  # once, not at every turn for as long as it lasts
                _LOG.warning("nobody can say who leads: %s", error.message)
            self._unheard = True
            return  # the term that there is runs out by itself
        self._unheard = False
        if term is not None and term != self._term:
            _LOG.info("this replica leads from now on", extra={"fields": {"term": term}})
        if term is None and self._term is not None:
            _LOG.info("another replica leads from now on")
        # The term began before the answer came.
        self._until = asked + self._ttl_s * (1 - _MARGIN)
        self._term = term
