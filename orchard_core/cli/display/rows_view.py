"""Rows that go from one place to another, on a screen or in plain lines. How many there are is not known."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, TextIO, TypeVar

from rich.console import Console, Group

from orchard_core.cli.display.screen import line
from orchard_core.cli.display.shown import Shown, View, wants_live
from orchard_core.cli.display.words import clock, count
from orchard_core.evals.clean import clean_line


class Sized(Protocol):
    """What is counted of a row."""

    @property
    def token_count(self) -> int:
        """Its tokens."""


R = TypeVar("R", bound=Sized)


@dataclass(slots=True, kw_only=True)
class RowsProgress:
    """How far it is."""

    started_at: float
    """Seconds since the epoch."""
    rows: int = 0
    """Rows that were read."""
    tokens: int = 0
    """Their tokens."""
    ended_at: float | None = None
    """When the last one was done."""

    def figures(self, now: float) -> str:
        """Rows, tokens and pace."""
        elapsed = max((self.ended_at or now) - self.started_at, 1e-9)
        pace = f"{count(self.rows / elapsed)} rows/s"
        return f"{self.rows:,} rows   {count(self.tokens)} tokens   {pace}   {clock(elapsed)}"


@contextmanager
def shown_rows(title: str, rows: Iterable[R], *, plain: bool) -> Iterator[Iterator[R]]:
    """The same rows, counted on stderr while somebody takes them."""
    live = wants_live(plain=plain)
    view: View[RowsProgress] = _Live(title) if live else _Plain(title)
    shown = Shown(view, RowsProgress(started_at=time.time()))

    def counted() -> Iterator[R]:
        for row in rows:
            yield row
            with shown.change() as progress:
                progress.rows += 1
                progress.tokens += row.token_count

    with shown.showing():
        try:
            yield counted()
        finally:
            with shown.change() as progress:
                progress.ended_at = time.time()


class _Live:
    every_s = 0.2

    def __init__(self, title: str) -> None:
        from rich.live import Live

        self._title = clean_line(title)
        self._console = Console(stderr=True, markup=False, emoji=False, highlight=False)
        self._live = Live(console=self._console, auto_refresh=False)

    def show(self, progress: RowsProgress, now: float) -> None:
        """Redraw."""
        if not self._live.is_started:
            self._live.start()
        head = line(self._title, "bold", self._console)
        self._live.update(Group(head, line(progress.figures(now), "", self._console)), refresh=True)

    def close(self, progress: RowsProgress, now: float) -> None:
        """Leave the last state on the screen."""
        self.show(progress, now)
        self._live.stop()


class _Plain:
    every_s = 5.0

    def __init__(self, title: str, stream: TextIO | None = None) -> None:
        self._title = clean_line(title)
        self._stream = stream or sys.stderr
        self._said = -1

    def show(self, progress: RowsProgress, now: float) -> None:
        """A line, unless nothing moved since the last one."""
        if progress.rows == self._said or (progress.rows == 0 and progress.ended_at is None):
            return
        self._said = progress.rows
        self._stream.write(f"{self._title}: {progress.figures(now)}\n")
        self._stream.flush()

    def close(self, progress: RowsProgress, now: float) -> None:
        """The last figures."""
        self.show(progress, now)
