"""A matrix in plain lines, for logs and pipes."""

from __future__ import annotations

import sys
from typing import TextIO

from orchard_core.cli.display.matrix_progress import CellProgress, MatrixProgress
from orchard_core.cli.display.words import clock, money
from orchard_core.evals.clean import clean_line
from orchard_core.rollout.matrix.key import CellKey


class PlainMatrix:
    """Writes to stderr: the whole at most every five seconds, a cell when it ends or is refused."""

    every_s = 5.0

    def __init__(self, title: str, stream: TextIO | None = None) -> None:
        self._title = clean_line(title)
        self._stream = stream or sys.stderr
        self._last = ""
        self._told: set[CellKey] = set()

    def show(self, progress: MatrixProgress, now: float) -> None:
        """What moved since the last look."""
        if progress.started_at is None and not any(cell.refused for cell in progress.cells.values()):
            return
        if not self._last:
            self._write(f"{self._title}: {len(progress.cells)} cells, {progress.planned} rollouts")
        self._show_cells(progress)
        cost = money(progress.cost_usd, partial=progress.unpriced)
        line = f"running {progress.running}  done {progress.finished}/{progress.planned}  {cost}"
        if line != self._last:
            self._last = line
            left = "" if progress.ended else f"  ETA {clock(progress.eta_s(now))}"
            self._write(f"[{clock(progress.elapsed_s(now))}] {line}{left}")

    def close(self, progress: MatrixProgress, now: float) -> None:
        """The last figures."""
        self.show(progress, now)
        if progress.capped:
            self._write(f"stopped: {progress.capped}")

    def _show_cells(self, progress: MatrixProgress) -> None:
        for key, cell in progress.cells.items():
            if key not in self._told and (cell.refused or cell.run.ended):
                self._told.add(key)
                self._write(f"{clean_line(key.text)}: {_said(cell)}")

    def _write(self, line: str) -> None:
        self._stream.write(line + "\n")
        self._stream.flush()


def _said(cell: CellProgress) -> str:
    if cell.refused:
        return f"refused: {clean_line(cell.refused, 500)}"
    errors = f", {cell.errors} without score" if cell.errors else ""
    return f"{cell.passed} of {len(cell.scores)} passed{errors}"
