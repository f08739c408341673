"""Where the events of a matrix meet a display, whatever thread they come from."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from orchard_core.cli.display.matrix_progress import MatrixProgress
from orchard_core.cli.display.shown import Shown, View, wants_live
from orchard_core.rollout.matrix.key import CellKey
from orchard_core.rollout.store.state import RunState
from orchard_core.types.events import Event


class Display:
    """A MatrixWatcher that lets a view show what happens."""

    def __init__(self, view: View[MatrixProgress], *, now: Callable[[], float] = time.time) -> None:
        self._shown = Shown(view, MatrixProgress(), now=now)

    def opened(self, key: CellKey, state: RunState) -> None:
        """A cell can be run."""
        with self._shown.change() as progress:
            progress.open(key, state)

    def refused(self, key: CellKey, reason: str) -> None:
        """A cell cannot be run."""
        with self._shown.change() as progress:
            progress.cell(key).refused = reason

    def capped(self, reason: str) -> None:
        """A bound was reached."""
        with self._shown.change() as progress:
            progress.capped = reason

    def event(self, key: CellKey, event: Event) -> None:
        """Something happened in a cell."""
        with self._shown.change() as progress:
            progress.handle(key, event)

    def showing(self) -> AbstractContextManager[None]:
        """Show until the block ends."""
        return self._shown.showing()

    @property
    def stopped_by(self) -> str:
        """The bound that was reached; empty: none."""
        with self._shown.change() as progress:
            return progress.capped


def make_display(title: str, *, plain: bool) -> Display:
    """The display that fits this terminal."""
    if wants_live(plain=plain):
        from orchard_core.cli.display.matrix_live import live_matrix

        return Display(live_matrix(title))
    from orchard_core.cli.display.matrix_plain import PlainMatrix

    return Display(PlainMatrix(title))
