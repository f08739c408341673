"""One pool: its demand, its policy, its luck."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable

from orchard_env.kubernetes.warm.config import PoolConfig
from orchard_env.kubernetes.warm.forecast import Demand, LeadTime, stock
from orchard_env.kubernetes.warm.told import PoolObserver

_PAUSE_S, _PAUSE_MAX_S = 1.0, 60.0
_TELL_S = 60.0
_log = logging.getLogger(__name__)


class Pool:
    """What one process knows of it beside the pods."""

    def __init__(
        self,
        config: PoolConfig,
        shape: str,
        observer: PoolObserver,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.config = config
        self.shape = shape
        self.observer = observer
        self.hits = self.misses = 0
        self.fault = ""
        """Why it cannot be filled; empty when it can."""
        self._clock = clock
        self._demand = Demand(config.window_s)
        self._lead = LeadTime()
        self._coming: set[str] = set()
        self._failures = 0
        self._again = float("-inf")
        self._told = float("-inf")

    def asked(self, when: float, now: float) -> None:
        """A sandbox of this shape was asked for, by whatever process. Seconds by the server's clock."""
        self._demand.note(when, now)

    def wanted(self, now: float) -> int:
        """How many pods there should be, ready and under way together."""
        if self.config.target is not None:
            return self.config.target
        forecast = stock(self._demand.rate(now), self._lead.seconds, self.config.margin)
        return max(self.config.least, min(self.config.most, forecast))

    def bearable(self, wanted: int) -> int:
        """So many are not drained yet: a demand that wavers would make and remove pods by turns."""
        return min(self.config.most, wanted + math.ceil(wanted / 4)) if self.config.target is None else wanted

    def comes_up(self, uid: str) -> None:
        """A pod of it is under way; told as often as one likes."""
        self._coming.add(uid)

    def came_up(self, uid: str, seconds: float) -> None:
        """A pod of it can be claimed, so long after its creation; told as often as one likes. Of one that was
        not seen under way nobody knows how long it has waited."""
        if uid not in self._coming:
            return
        self._coming.discard(uid)
        self._lead.note(seconds)
        self.fault, self._failures, self._again = "", 0, float("-inf")

    def failed(self, fault: str) -> None:
        """A pod could not be begun, or did not come up: the next try comes after a pause that grows."""
        now = self._clock()
        if not self.fault or now - self._told > _TELL_S:
            _log.warning("the pool %s cannot be filled: %s", self.config.name, fault)
            self._told = now
        self.fault = fault
        self.observer.filled(self.config.name, fault=fault)
        if now < self._again:
            return  # one of the same try
        self._again = now + min(_PAUSE_MAX_S, _PAUSE_S * 2**self._failures)
        self._failures = min(self._failures + 1, 10)

    def may_try(self) -> bool:
        """No pause is on."""
        return self._clock() >= self._again

    def trust(self) -> int:
        """How many may be begun at once: one, after a failure."""
        return 1 if self._failures else 1 << 30
