"""A live screen: what is drawn anew at every look, and the parts that all of them have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from orchard_core.cli.display.words import clock
from orchard_core.evals.clean import clean_line


class Going(Protocol):
    """A progress with a beginning and, one hopes, an end."""

    started_at: float | None

    @property
    def planned(self) -> int:
        """Rollouts it consists of."""

    @property
    def finished(self) -> int:
        """Of these, finished."""

    def elapsed_s(self, now: float) -> float:
        """Since this start."""

    def eta_s(self, now: float) -> float | None:
        """Seconds left; None: nobody can say."""


P = TypeVar("P", bound=Going)
Draw = Callable[[str, P, float, Console], Group]
"""Title, progress, time and console; gives what one look shows."""


class LiveView(Generic[P]):
    """Redraws on stderr, so that stdout stays free for what the command prints."""

    every_s = 0.2

    def __init__(self, title: str, draw: Draw[P], console: Console | None = None) -> None:
        self._title = clean_line(title)
        self._draw = draw
        self._console = console or Console(stderr=True, markup=False, emoji=False, highlight=False)
        self._live = Live(console=self._console, auto_refresh=False)

    def show(self, progress: P, now: float) -> None:
        """Redraw."""
        if not self._live.is_started:
            self._live.start()
        self._live.update(self._draw(self._title, progress, now, self._console), refresh=True)

    def close(self, progress: P, now: float) -> None:
        """Leave the last state on the screen."""
        if progress.started_at is not None:
            self.show(progress, now)
        self._live.stop()


def line(text: str, style: str, console: Console) -> Text:
    """One line, cut where the screen ends."""
    return Text(clean_line(text, console.width), style=style, no_wrap=True, overflow="ellipsis")


def bar(progress: Going, now: float, console: Console, *, state: str) -> Table:
    """Share, time, and `state` or, when it is empty, what is left."""
    share = progress.finished / progress.planned if progress.planned else 0.0
    left = state or f"ETA {clock(progress.eta_s(now))}"
    right = f" {share:4.0%}  {clock(progress.elapsed_s(now))}  {left}"
    grid = Table.grid(padding=0)
    grid.add_column(width=max(5, console.width - len(right) - 1))
    grid.add_column(no_wrap=True)
    grid.add_row(ProgressBar(total=max(progress.planned, 1), completed=progress.finished), right)
    return grid
