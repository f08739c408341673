"""Plain lines, for logs and pipes: one when something changed, at most one every five seconds."""

from __future__ import annotations

import sys
from typing import TextIO

from orchard_core.cli.display.progress import Progress
from orchard_core.cli.display.words import clock, figures, outcomes
from orchard_core.evals.clean import clean_line


class PlainView:
    """Writes lines to stderr."""

    every_s = 5.0

    def __init__(self, title: str, stream: TextIO | None = None) -> None:
        self._title = clean_line(title)
        self._stream = stream or sys.stderr
        self._last = ""

    def show(self, progress: Progress, now: float) -> None:
        """A line, unless nothing moved since the last one."""
        if progress.started_at is None:
            return
        if not self._last:
            self._write(f"{self._title}: {progress.planned} rollouts, {progress.resumed} of them done before")
        line = "  ".join(figures(progress, now))
        if line != self._last:
            self._last = line
            left = "" if progress.ended else f"  ETA {clock(progress.eta_s(now))}"
            self._write(f"[{clock(progress.elapsed_s(now))}] {line}{left}")

    def close(self, progress: Progress, now: float) -> None:
        """The last figures and the outcomes."""
        self.show(progress, now)
        if progress.outcomes:
            self._write(f"outcomes: {outcomes(progress)}")

    def _write(self, line: str) -> None:
        self._stream.write(line + "\n")
        self._stream.flush()
