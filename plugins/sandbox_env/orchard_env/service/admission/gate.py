"""So much work of one kind at once; the rest waits, within bounds."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable

from pydantic import Field

from orchard_core import Record, ServiceOverloaded
from orchard_env.service.admission.fair_queue import FairQueue
from orchard_env.service.faults import TooManyRequests

_SOONEST_S, _LATEST_S = 1.0, 300.0
_SMOOTH = 0.1
"""How much the latest piece of work counts in the mean."""


class GateLimits(Record):
    """Bounds of one kind of work."""

    at_once: int = Field(ge=1)
    """Pieces of work at once."""
    queue: int = Field(ge=0)
    """Requests that may wait, of all tenants together."""
    tenant_queue: int = Field(ge=0)
    """Requests of one tenant that may wait."""
    tenant_share: float = Field(default=1.0, gt=0, le=1)
    """The part of `at_once` that one tenant may have, however idle the rest is: what it holds cannot be taken
    back when another comes."""
    wait_s: float = Field(default=30.0, gt=0)
    """Longest wait in the queue, seconds."""


class GateLoad(Record):
    """How full a gate is."""

    running: int
    """Pieces of work at once, now."""
    waiting: int
    """Requests in the queue."""
    refused: int
    """Requests sent away since the start."""
    mean_s: float
    """How long a piece of work took lately, seconds."""


class _Turn:
    """A request that waits."""

    __slots__ = ("came", "tenant")

    def __init__(self, tenant: str) -> None:
        self.tenant = tenant
        self.came: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class Gate:
    """One kind of work. `enter` and `leave` cost a microsecond when there is room."""

    def __init__(self, kind: str, limits: GateLimits, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._kind = kind
        self._limits = limits
        self._most = max(1, int(limits.at_once * limits.tenant_share))
        self._clock = clock
        self._free = limits.at_once
        self._running: Counter[str] = Counter()
        self._queue: FairQueue[_Turn] = FairQueue()
        self._refused = 0
        self._mean_s = 1.0

    async def enter(self, tenant: str, weight: float) -> float:
        """Wait for a turn; gives what `leave` wants back. Raises TooManyRequests for the tenant's own bound
        and ServiceOverloaded for everybody's."""
        # With room left, whoever waits does so for its own share, and so does not come before this one.
        if self._free > 0 and self._running[tenant] < self._most:
            self._free -= 1
            self._running[tenant] += 1
            return self._clock()
        turn = _Turn(tenant)
        self._line_up(turn, weight)
        try:
            async with asyncio.timeout(self._limits.wait_s):
                await turn.came
        except TimeoutError:
            if not self._has_come(turn):
                raise self._full(tenant, weight, f"no turn came within {self._limits.wait_s:g} s") from None
        except BaseException:
            if self._has_come(turn):
                self.leave(tenant, None)
            raise
        return self._clock()

    def _line_up(self, turn: _Turn, weight: float) -> None:
        tenant = turn.tenant
        if self._queue.waiting(tenant) >= self._limits.tenant_queue:
            self._refused += 1
            raise TooManyRequests(
                f"{self._queue.waiting(tenant)} requests of tenant {tenant} wait for {self._kind} already",
                retry_after_s=self._in(tenant, weight),
                hint="come again after the seconds that Retry-After says, with fewer requests at once",
            )
        if len(self._queue) >= self._limits.queue:
            last = self._queue.pop_last_of_longest(tenant, weight)
            if last is None:
                raise self._full(tenant, weight, f"{len(self._queue)} requests wait already")
            # Whoever asks most makes room: a tenant that asks for little is not kept out by one that floods.
            last.came.set_exception(self._full(tenant, weight, "others, who wait for less, came in between"))
        self._queue.push(tenant, weight, turn)
        self._let_in()

    def _has_come(self, turn: _Turn) -> bool:
        """Whether the turn had come when the waiting ended; if not, it is waited for no more."""
        if turn.came.done() and not turn.came.cancelled() and turn.came.exception() is None:
            return True
        self._queue.remove(turn.tenant, turn)
        return False

    def leave(self, tenant: str, began: float | None) -> None:
        """The work is done; None: it never began."""
        if began is not None:
            self._mean_s += _SMOOTH * (self._clock() - began - self._mean_s)
        self._free += 1
        self._running[tenant] -= 1
        if not self._running[tenant]:
            del self._running[tenant]
        if self._queue:
            self._let_in()

    def _let_in(self) -> None:
        while self._free > 0 and self._queue:
            turn = self._queue.pop(lambda tenant: self._running[tenant] < self._most)
            if turn is None:
                return
            self._free -= 1
            self._running[turn.tenant] += 1
            turn.came.set_result(None)

    def _full(self, tenant: str, weight: float, why: str) -> ServiceOverloaded:
        self._refused += 1
        return ServiceOverloaded(
            f"the service has no room for {self._kind} now: {why}",
            retry_after_s=self._in(tenant, weight),
            hint="come again after the seconds that Retry-After says",
        )

    def _in(self, tenant: str, weight: float) -> float:
        """Seconds until a tenant's queue, as long as it is now, has had its turns, at the pace of late."""
        per_s = self._limits.at_once / max(self._mean_s, 0.001) * self._queue.share(tenant, weight)
        return min(_LATEST_S, max(_SOONEST_S, (self._queue.waiting(tenant) + 1) / per_s))

    @property
    def load(self) -> GateLoad:
        """How full it is."""
        return GateLoad(
            running=self._limits.at_once - self._free,
            waiting=len(self._queue),
            refused=self._refused,
            mean_s=self._mean_s,
        )
