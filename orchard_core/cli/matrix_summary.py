"""What came out of a matrix, in a few lines."""

from __future__ import annotations

from textwrap import wrap
from typing import Self

from orchard_core.cli.display.words import clock, count, money
from orchard_core.cli.output import table
from orchard_core.evals.clean import clean_line
from orchard_core.evals.matrix_report import Cell, CellKey, MatrixReport, RefusedCell
from orchard_core.evals.statistics import Estimate
from orchard_core.types.base import Record


class CellSummary(Record):
    """One cell, earlier starts included."""

    key: CellKey
    """Which."""
    run: str
    """Its run directory, relative to the matrix directory."""
    planned: int
    """Rollouts it consists of."""
    finished: int
    """Of these, finished."""
    scored: int
    """Of these, with a score."""
    pass_at_1: Estimate | None
    """Chance that one attempt passes, over everything planned."""
    tokens: int
    """Tokens of all calls, those of repeated and stopped tries included."""
    cost_usd: float | None
    """US dollars for them; None when a call's cost is unknown."""
    seconds: float
    """From the first start to the last end."""

    @classmethod
    def of(cls, cell: Cell) -> Self:
        """From the report's cell."""
        total, spent = cell.report.total, cell.report.total.spending.spent
        return cls(
            key=cell.key, run=cell.run, planned=total.planned, finished=total.finished, scored=total.scored,
            pass_at_1=total.pass_at_1.planned, tokens=spent.usage.total, cost_usd=spent.cost_usd,
            seconds=total.spending.wall_clock_s,
        )  # fmt: skip


class MatrixSummary(Record):
    """A whole matrix, earlier starts included."""

    matrix: str
    """The matrix directory."""
    cells: tuple[CellSummary, ...]
    """Cells that have a run."""
    refused: tuple[RefusedCell, ...]
    """Cells that could not be run, or not any further."""
    stopped: str
    """The bound over the whole matrix that was reached; empty: none."""

    @classmethod
    def of(cls, report: MatrixReport, *, stopped: str) -> Self:
        """From the report."""
        cells = tuple(map(CellSummary.of, report.cells))
        return cls(matrix=report.root, cells=cells, refused=report.refused, stopped=stopped)

    @property
    def missing(self) -> int:
        """Planned, not finished."""
        return sum(cell.planned - cell.finished for cell in self.cells)

    @property
    def sound(self) -> bool:
        """Every cell was run, and every rollout has a score."""
        scored = all(cell.scored == cell.planned for cell in self.cells)
        return scored and not self.refused and not self.stopped and bool(self.cells)

    def _by_reason(self) -> dict[str, list[CellKey]]:
        found: dict[str, list[CellKey]] = {}
        for item in self.refused:
            found.setdefault(item.reason, []).append(item.key)
        return found

    def lines(self, width: int | None) -> list[str]:
        """For people, fitted to a width."""
        lines = [clean_line(f"matrix     {self.matrix}")]
        if self.cells:
            head = ("HARNESS", "MODEL", "TASK SET", "DONE", "PASS@1 [95%]", "TOKENS", "COST", "TIME")
            lines += ["", *table(head, [_row(cell) for cell in self.cells], width=width)]
        for reason, keys in self._by_reason().items():
            lines += ["", *(f"refused    {clean_line(key.text)}" for key in keys)]
            told = clean_line(reason, 500) or "not started yet"
            lines += [f"           {line}" for line in (wrap(told, width - 12) if width else [told])]
        if self.stopped:
            lines += ["", f"stopped    {self.stopped}"]
        return [*lines, "", f"next       orchard report {self.matrix}"]


def _row(cell: CellSummary) -> tuple[str, ...]:
    key = cell.key
    cost = money(cell.cost_usd)
    return (
        clean_line(key.harness), clean_line(key.model), clean_line(key.taskset),
        f"{cell.finished}/{cell.planned}", _rate(cell.pass_at_1), count(cell.tokens),
        "unknown" if cost == "cost unknown" else cost, clock(cell.seconds),
    )  # fmt: skip


def _rate(rate: Estimate | None) -> str:
    if rate is None:
        return "-"
    if rate.low is None or rate.high is None:
        return f"{rate.value:.0%}"
    return f"{rate.value:.0%} [{100 * rate.low:.0f}-{100 * rate.high:.0f}]"
