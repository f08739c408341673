"""How fast calls may go: one bucket for all callers, which the server's refusals make slower."""

from __future__ import annotations

import asyncio
import time

_SLOWEST = 16.0
"""The server's refusals make the rate at most this many times smaller."""
_SETTLE_S = 1.0
"""Refusals that come together count as one."""
_RECOVER = 0.98


class RateLimit:
    """A token bucket kept as the time at which it would be full of debt (GCRA): no queue, no task.

    Turns are given in order of asking. A caller that is cancelled while it waits leaves its turn unused.
    """

    def __init__(self, per_s: float, burst: int) -> None:
        self._usual = self._pace = 1.0 / per_s
        self._burst = burst
        self._paid_until = 0.0
        self._held_until = 0.0
        self._slowed_at = float("-inf")

    async def turn(self) -> None:
        """Wait for this call's turn."""
        while True:
            held = self._held_until
            wait = self._book(time.monotonic())
            if wait <= 0:
                return
            await asyncio.sleep(wait)
            if self._held_until == held:
                return
            # The server asked for a pause meanwhile: this turn lies within it, so another is taken behind it.

    def refused(self, pause_s: float) -> None:
        """The server said "too many": nobody goes for `pause_s`, then all go slower, and not in a burst."""
        now = time.monotonic()
        if now - self._slowed_at > _SETTLE_S:
            self._slowed_at = now
            self._pace = min(self._pace * 2, self._usual * _SLOWEST)
        if now + pause_s > self._held_until:
            self._held_until = now + pause_s
            self._paid_until = max(self._paid_until, self._held_until + self._burst * self._pace)

    def accepted(self) -> None:
        """The server took a call: the usual rate comes back by and by."""
        if self._pace > self._usual:
            self._pace = max(self._usual, self._pace * _RECOVER)

    @property
    def per_s(self) -> float:
        """Calls a second at present."""
        return 1.0 / self._pace

    def _book(self, now: float) -> float:
        """Seconds until the turn that is booked hereby."""
        start = max(self._paid_until, now)
        self._paid_until = start + self._pace
        return start - (self._burst - 1) * self._pace - now
