"""A progress that events change from any thread while a view looks at it from a thread of its own."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Lock
from typing import Generic, Protocol, TypeVar

from orchard_core.cli.display.looking import looking

P = TypeVar("P")
P_contra = TypeVar("P_contra", contravariant=True)


class View(Protocol[P_contra]):
    """Shows a progress."""

    @property
    def every_s(self) -> float:
        """Seconds between two looks."""

    def show(self, progress: P_contra, now: float) -> None:
        """Show the present state."""

    def close(self, progress: P_contra, now: float) -> None:
        """Show the last state and give the terminal back."""


class Shown(Generic[P]):
    """A progress, its view, and the lock between them."""

    def __init__(self, view: View[P], progress: P, *, now: Callable[[], float] = time.time) -> None:
        self._view = view
        self._progress = progress
        self._now = now
        self._lock = Lock()

    @contextmanager
    def change(self) -> Iterator[P]:
        """The progress, while nobody looks at it."""
        with self._lock:
            yield self._progress

    def showing(self) -> AbstractContextManager[None]:
        """Show until the block ends."""
        return looking(self._show, self._close, every_s=self._view.every_s)

    def _show(self) -> None:
        with self._lock:
            self._view.show(self._progress, self._now())

    def _close(self) -> None:
        with self._lock:
            self._view.close(self._progress, self._now())


def wants_live(*, plain: bool) -> bool:
    """Whether stderr is a terminal that can redraw, and the user did not ask for plain lines."""
    if plain or "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb":
        return False
    return sys.stderr.isatty()
