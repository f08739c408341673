"""What is told of pools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolStats:
    """One pool as this process sees it."""

    name: str
    """The pool's."""
    ready: int
    """Pods that can be claimed now."""
    coming: int
    """Pods under way."""
    wanted: int
    """How many the policy says there should be, ready and under way together."""
    hits: int
    """Sandboxes of this process that took a pod of it."""
    misses: int
    """Sandboxes of this process that fitted and found none."""
    lost: int
    """Pods that another claimer was quicker to take."""
    fault: str
    """Why it cannot be filled at present; empty when it can."""

    @property
    def hit_rate(self) -> float | None:
        """Hits over hits and misses; None before the first."""
        asked = self.hits + self.misses
        return self.hits / asked if asked else None


class PoolObserver(Protocol):
    """Told at once; must be quick and never raise."""

    def claimed(self, pool: str, *, hit: bool, seconds: float) -> None:
        """A sandbox that fits the pool was asked for. `seconds` until its agent knew the new token, or until
        it was clear that none could be had."""

    def filled(self, pool: str, *, fault: str) -> None:
        """A pod was begun; with a fault, it could not be, or did not come up."""


class Unobserved:
    """Honours PoolObserver for nobody."""

    def claimed(self, pool: str, *, hit: bool, seconds: float) -> None:
        """See PoolObserver."""

    def filled(self, pool: str, *, fault: str) -> None:
        """See PoolObserver."""
