"""Calls in flight to one upstream: fewer after a 429, slowly more again.

Additive increase, multiplicative decrease (Chiu and Jain 1989): a 429 halves the bound, each success adds
1/bound, so that a full round of successes adds one.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from time import monotonic


class Slots:
    """A bound on calls in flight, first come first served."""

    def __init__(self, ceiling: int | None) -> None:
        self._ceiling = math.inf if ceiling is None else max(1, ceiling)
        self._bound: float = self._ceiling
        self._in_flight = 0
        self._queue: deque[asyncio.Future[None]] = deque()
        self._resume_at = 0.0
        self._cut_at = 0.0

    @property
    def bound(self) -> float:
        """Calls that may be in flight now; infinite while nothing bounds them."""
        return self._bound

    @property
    def in_flight(self) -> int:
        """Calls that hold a slot."""
        return self._in_flight

    @property
    def free(self) -> bool:
        """Whether `acquire` would return at once."""
        return not self._queue and self._in_flight < int_floor(self._bound) and self._resume_at <= monotonic()

    async def acquire(self) -> None:
        """Wait for a slot, and for the end of a pause that the upstream asked for."""
        if self._queue or self._in_flight >= int_floor(self._bound):
            await self._queued()
        else:
            self._in_flight += 1
        try:
            while (rest := self._resume_at - monotonic()) > 0:  # noqa: ASYNC110 - the pause may be extended
                await asyncio.sleep(rest)
        except asyncio.CancelledError:
            self.release()
            raise

    async def _queued(self) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release()
            else:
                self._queue.remove(turn)
            raise

    def release(self) -> None:
        """Give the slot back."""
        self._in_flight -= 1
        self._wake()

    def succeeded(self) -> None:
        """A call was answered."""
        if self._bound < self._ceiling:
            self._bound = min(self._ceiling, self._bound + 1.0 / self._bound)
            self._wake()

    def throttled(self, started: float, asked_s: float | None) -> None:
        """A call that started at `started` (monotonic) was answered 429.

        Calls that were under way when the bound was last cut say nothing new and do not cut it again.
        """
        if asked_s is not None:
            self._resume_at = max(self._resume_at, monotonic() + asked_s)
        if started < self._cut_at:
            return
        self._cut_at = monotonic()
        self._bound = max(1.0, min(self._bound, float(self._in_flight)) / 2.0)

    def _wake(self) -> None:
        while self._queue and self._in_flight < int_floor(self._bound):
            turn = self._queue.popleft()
            if not turn.done():
                self._in_flight += 1
                turn.set_result(None)


def int_floor(bound: float) -> float:
    """Whole calls within a bound that may be infinite."""
    return bound if math.isinf(bound) else math.floor(bound)
