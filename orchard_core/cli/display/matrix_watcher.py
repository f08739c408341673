"""Where the events of a matrix meet a display, whatever thread they come from."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from threading import Lock
from typing import Protocol

from orchard_core.cli.display.looking import looking
from orchard_core.cli.display.matrix_progress import MatrixProgress
from orchard_core.cli.display.watcher import wants_live
from orchard_core.rollout.matrix.key import CellKey
from orchard_core.rollout.store.state import RunState
from orchard_core.types.events import Event


class MatrixView(Protocol):
    """Shows a MatrixProgress."""

    @property
    def every_s(self) -> float:
        """Seconds between two looks."""

    def show(self, progress: MatrixProgress, now: float) -> None:
        """Show the present state."""

    def close(self, progress: MatrixProgress, now: float) -> None:
        """Show the last state and give the terminal back."""


class Display:
    """A MatrixWatcher that lets a view show what happens, from a thread of its own."""

    def __init__(self, view: MatrixView, *, now: Callable[[], float] = time.time) -> None:
        self._view = view
        self._now = now
        self._lock = Lock()
        self.progress = MatrixProgress()

    def opened(self, key: CellKey, state: RunState) -> None:
        """A cell can be run."""
        with self._lock:
            self.progress.open(key, state)

    def refused(self, key: CellKey, reason: str) -> None:
        """A cell cannot be run."""
        with self._lock:
            self.progress.cell(key).refused = reason

    def capped(self, reason: str) -> None:
        """A bound was reached."""
        with self._lock:
            self.progress.capped = reason

    def event(self, key: CellKey, event: Event) -> None:
        """Something happened in a cell."""
        with self._lock:
            self.progress.handle(key, event)

    def showing(self) -> AbstractContextManager[None]:
        """Show until the block ends."""
        return looking(self._show, self._close, every_s=self._view.every_s)

    def _show(self) -> None:
        with self._lock:
            self._view.show(self.progress, self._now())

    def _close(self) -> None:
        with self._lock:
            self._view.close(self.progress, self._now())


def make_display(title: str, *, plain: bool) -> Display:
    """The display that fits this terminal."""
    if wants_live(plain=plain):
        from orchard_core.cli.display.matrix_live import LiveMatrix

        return Display(LiveMatrix(title))
    from orchard_core.cli.display.matrix_plain import PlainMatrix

    return Display(PlainMatrix(title))
