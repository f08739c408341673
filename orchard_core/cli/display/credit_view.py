"""The assigning of credit on a screen, or in plain lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TextIO

from rich.console import Console, Group

from orchard_core.cli.display.credit_progress import CreditProgress
from orchard_core.cli.display.screen import LiveView, bar, line
from orchard_core.cli.display.shown import Shown, View, wants_live
from orchard_core.cli.display.words import clock, money
from orchard_core.evals.clean import clean_line
from orchard_core.types.credit import Credit


class CreditDisplay:
    """A progress that a view shows."""

    def __init__(
        self,
        view: View[CreditProgress],
        progress: CreditProgress,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._shown = Shown(view, progress, now=now)
        self._now = now

    def begin(self) -> None:
        """The work begins."""
        with self._shown.change() as progress:
            progress.started_at = self._now()

    def add(self, credit: Credit, *, cost_usd: float, unpriced: bool) -> None:
        """One more credit; cost is that of this start so far."""
        with self._shown.change() as progress:
            progress.add(credit)
            progress.cost_usd, progress.unpriced = cost_usd, unpriced

    def add_rollout(self) -> None:
        """One more continuation was run."""
        with self._shown.change() as progress:
            progress.measured += 1

    def end(self) -> None:
        """The work has ended."""
        with self._shown.change() as progress:
            progress.ended_at = self._now()

    def showing(self) -> AbstractContextManager[None]:
        """Show until the block ends."""
        return self._shown.showing()


def make_display(title: str, progress: CreditProgress, *, plain: bool) -> CreditDisplay:
    """A live screen on a terminal, else plain lines."""
    if wants_live(plain=plain):
        return CreditDisplay(LiveView(title, screen), progress)
    return CreditDisplay(PlainCredit(title), progress)


def screen(title: str, progress: CreditProgress, now: float, console: Console) -> Group:
    """What one look shows."""
    if progress.started_at is None:
        return Group(line(title, "bold", console), line("starting ...", "dim", console))
    state = "ended" if progress.ended_at is not None else ""
    return Group(
        line(title, "bold", console),
        bar(progress, now, console, state=state),
        line(" · ".join(figures(progress)), "", console),
    )


def figures(progress: CreditProgress) -> list[str]:
    """Every figure but the time."""
    parts = [f"done {progress.finished}/{progress.planned}", f"annotated {progress.annotated}"]
    if progress.turns:
        parts.append(f"kept {progress.kept / progress.turns:.0%} of answers")
    if progress.failed:
        parts.append(f"failed {progress.failed}")
    if progress.measured:
        parts.append(f"measured with {progress.measured} of about {progress.expected_rollouts} rollouts")
    cost = money(progress.cost_usd, partial=progress.unpriced)
    parts.append(f"{cost} of about {money(progress.expected_usd)}" if progress.expected_usd else cost)
    return parts


class PlainCredit:
    """Writes to stderr, when something moved, at most every five seconds."""

    every_s = 5.0

    def __init__(self, title: str, stream: TextIO | None = None) -> None:
        self._title = clean_line(title)
        self._stream = stream or sys.stderr
        self._last = ""

    def show(self, progress: CreditProgress, now: float) -> None:
        """A line, unless nothing moved since the last one."""
        if progress.started_at is None:
            return
        text = "  ".join(figures(progress))
        if text == self._last:
            return
        if not self._last:
            self._write(f"{self._title}: {progress.planned} rollouts, {progress.before} of them done before")
        self._last = text
        left = "" if progress.ended_at is not None else f"  ETA {clock(progress.eta_s(now))}"
        self._write(f"[{clock(progress.elapsed_s(now))}] {text}{left}")

    def close(self, progress: CreditProgress, now: float) -> None:
        """The last figures."""
        self.show(progress, now)

    def _write(self, text: str) -> None:
        self._stream.write(text + "\n")
        self._stream.flush()
