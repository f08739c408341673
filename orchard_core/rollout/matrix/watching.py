"""Who looks on while a matrix runs."""

from __future__ import annotations

from typing import Protocol

from orchard_core.rollout.matrix.key import CellKey
from orchard_core.rollout.store.state import RunState
from orchard_core.types.events import Event


class MatrixWatcher(Protocol):
    """Called in the event loop, but for `event`; none of them may block or raise."""

    def opened(self, key: CellKey, state: RunState) -> None:
        """A cell can be run; `state` is what earlier starts left, to be read at once."""

    def refused(self, key: CellKey, reason: str) -> None:
        """A cell cannot be run, or not any further."""

    def capped(self, reason: str) -> None:
        """A bound over the whole matrix was reached; everything stops."""

    def event(self, key: CellKey, event: Event) -> None:
        """Something happened in a cell; called from a thread of the cell's own."""


class NobodyWatches:
    """For a matrix that only its results are wanted of."""

    def opened(self, key: CellKey, state: RunState) -> None:
        """Nothing."""

    def refused(self, key: CellKey, reason: str) -> None:
        """Nothing."""

    def capped(self, reason: str) -> None:
        """Nothing."""

    def event(self, key: CellKey, event: Event) -> None:
        """Nothing."""
