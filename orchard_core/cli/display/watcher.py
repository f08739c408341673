"""Where events meet a display, whatever thread they come from."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from threading import Lock
from typing import Protocol

from orchard_core.cli.display.looking import looking
from orchard_core.cli.display.progress import Progress
from orchard_core.types.events import Event


class View(Protocol):
    """Shows a Progress."""

    @property
    def every_s(self) -> float:
        """Seconds between two looks."""

    def show(self, progress: Progress, now: float) -> None:
        """Show the present state."""

    def close(self, progress: Progress, now: float) -> None:
        """Show the last state and give the terminal back."""


class Watcher:
    """Takes events from any thread and lets a view show them from a thread of its own."""

    def __init__(self, view: View, *, now: Callable[[], float] = time.time) -> None:
        self._view = view
        self._now = now
        self._lock = Lock()
        self.progress = Progress()

    def __call__(self, event: Event) -> None:
        """Take in one event."""
        with self._lock:
            self.progress.handle(event)

    def showing(self) -> AbstractContextManager[None]:
        """Show until the block ends."""
        return looking(self._show, self._close, every_s=self._view.every_s)

    def _show(self) -> None:
        with self._lock:
            self._view.show(self.progress, self._now())

    def _close(self) -> None:
        with self._lock:
            self._view.close(self.progress, self._now())


def wants_live(*, plain: bool) -> bool:
    """Whether stderr is a terminal that can redraw, and the user did not ask for plain lines."""
    if plain or "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb":
        return False
    return sys.stderr.isatty()


def make_watcher(title: str, *, plain: bool) -> Watcher:
    """The display that fits this terminal."""
    if wants_live(plain=plain):
        from orchard_core.cli.display.live import LiveView

        return Watcher(LiveView(title))
    from orchard_core.cli.display.plain import PlainView

    return Watcher(PlainView(title))
