"""Time that is not charged to a task."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic


class Waits:
    """Time during which at least one call of a session waited; calls that wait together count once."""

    def __init__(self) -> None:
        self._total = 0.0
        self._waiting = 0
        self._since = 0.0

    @property
    def total_s(self) -> float:
        """Seconds until now."""
        return self._total + (monotonic() - self._since if self._waiting else 0.0)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Around whatever is waited for."""
        if not self._waiting:
            self._since = monotonic()
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._total += monotonic() - self._since
