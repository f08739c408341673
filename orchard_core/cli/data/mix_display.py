"""How a mix is shown while it goes on."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from orchard_core.cli.display.shown import Shown, View, wants_live
from orchard_core.cli.display.words import clock
from orchard_core.datasets.mix.run import Going, Watch
from orchard_core.evals.clean import clean_line

_PARTS = {"read": (0.0, 0.6), "plan": (0.6, 0.0), "write": (0.6, 0.4)}
"""Where each stage begins, and how much of the whole it is, as measured on 20,000 rollouts."""
_DOING = {"read": "reading", "plan": "choosing", "write": "writing"}


@dataclass(slots=True, kw_only=True)
class MixProgress:
    """How far a mix is."""

    started_at: float | None = field(default_factory=time.time)
    """When this start began."""
    going: Going = field(default_factory=lambda: Going(stage="read"))
    """The last that was heard."""
    first: float | None = None
    """Share that an earlier start had done."""
    planned: int = 1_000
    """Thousandths of the work."""

    @property
    def share(self) -> float:
        """Of the whole work, 0 to 1."""
        begin, part = _PARTS[self.going.stage]
        return begin + part * min(1.0, self.going.share)

    @property
    def finished(self) -> int:
        """Thousandths that are done."""
        return int(1_000 * self.share)

    def hear(self, going: Going) -> None:
        """Take in how far it is."""
        self.going = going
        if self.first is None:
            self.first = self.share

    def elapsed_s(self, now: float) -> float:
        """Since this start."""
        return max(0.0, now - (self.started_at or now))

    def eta_s(self, now: float) -> float | None:
        """Seconds left at the rate so far."""
        done = self.share - (self.first or 0.0)
        return self.elapsed_s(now) * (1 - self.share) / done if done > 0.01 else None

    def words(self) -> str:
        """What is done, and how many rows of it."""
        going, doing = self.going, _DOING[self.going.stage]
        of = f" of {going.of:,}" if going.of else ""
        return f"{doing}: {going.rows:,}{of} rows" if going.rows else f"{doing} ..."


class _PlainView:
    """A line on stderr when something moved, at most one every five seconds."""

    every_s = 5.0

    def __init__(self, title: str) -> None:
        self._title = clean_line(title)
        self._last = ""

    def show(self, progress: MixProgress, now: float) -> None:
        """A line, unless nothing moved."""
        words = progress.words()
        if words != self._last:
            self._last = words
            left = clock(progress.eta_s(now))
            sys.stderr.write(f"[{clock(progress.elapsed_s(now))}] {self._title}: {words}  ETA {left}\n")
            sys.stderr.flush()

    def close(self, progress: MixProgress, now: float) -> None:
        """Nothing more."""


@contextmanager
def display(title: str, *, plain: bool) -> Iterator[Watch]:
    """Show a mix until the block ends; gives what is to be told how far it is."""
    view: View[MixProgress] = _live(title) if wants_live(plain=plain) else _PlainView(title)
    shown = Shown(view, MixProgress())

    with ExitStack() as stack:

        def watch(going: Going) -> None:
            with shown.change() as progress:
                if progress.first is None:  # the display's thread begins when the mix's processes have
                    stack.enter_context(shown.showing())
                progress.hear(going)

        yield watch


def _live(title: str) -> View[MixProgress]:
    from rich.console import Console, Group

    from orchard_core.cli.display.screen import LiveView, bar, line

    def screen(title: str, progress: MixProgress, now: float, console: Console) -> Group:
        head = line(title, "bold", console)
        return Group(head, bar(progress, now, console, state=""), line(progress.words(), "", console))

    return LiveView(title, screen)
