"""Harness by model, and training harness by evaluation harness: tables coloured by pass rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchard_core.evals.attempts import Rate
from orchard_core.evals.html.view import CellView
from orchard_core.evals.matrix_report import MatrixReport, RefusedCell, TransferCell

STEPS = 10
"""Colours of the ramp, less one; style.css names them h0 to h10."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatSquare:
    """One square."""

    rate: Rate | None
    """pass@1; None: there is no such cell, or it has no attempt."""
    cell: CellView | None = None
    """What it links to."""
    note: str = ""
    """Why there is nothing to show."""

    @property
    def step(self) -> int | None:
        """Its colour, from 0 to STEPS."""
        known = self.rate.planned if self.rate else None
        return None if known is None else round(known.value * STEPS)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap:
    """One table."""

    name: str
    """Its task set."""
    columns: tuple[str, ...]
    """Heads from left to right."""
    rows: tuple[tuple[str, tuple[HeatSquare, ...]], ...]
    """Head and squares of each line."""


def heat_maps(report: MatrixReport, cells: Sequence[CellView]) -> tuple[HeatMap, ...]:
    """One a task set, in the order asked for; none for a single cell, which has nothing beside it."""
    if len(cells) + len(report.refused) < 2:
        return ()
    keys = [view.cell.key for view in cells] + [refused.key for refused in report.refused]
    return tuple(_map(taskset, report, cells) for taskset in dict.fromkeys(key.taskset for key in keys))


def _map(taskset: str, report: MatrixReport, cells: Sequence[CellView]) -> HeatMap:
    here = [view for view in cells if view.cell.key.taskset == taskset]
    refused = [item for item in report.refused if item.key.taskset == taskset]
    keys = [view.cell.key for view in here] + [item.key for item in refused]
    squares = {(item.key.harness, item.key.model): _refusal(item) for item in refused}
    for view in here:
        rate = view.cell.report.total.pass_at_1
        squares[view.cell.key.harness, view.cell.key.model] = HeatSquare(rate=rate, cell=view)
    models = tuple(dict.fromkeys(key.model for key in keys))
    rows = tuple(
        (harness, tuple(squares.get((harness, model), HeatSquare(rate=None)) for model in models))
        for harness in dict.fromkeys(key.harness for key in keys)
    )
    return HeatMap(name=taskset, columns=models, rows=rows)


def _refusal(item: RefusedCell) -> HeatSquare:
    return HeatSquare(rate=None, note=f"refused: {item.reason}" if item.reason else "not started")


def transfer_map(transfer: Sequence[TransferCell]) -> HeatMap | None:
    """Rows: where the training rollouts came from; columns: where it was evaluated. None without any."""
    if not transfer:
        return None
    columns = tuple(dict.fromkeys(item.eval_harness for item in transfer))
    found = {(item.train_harness, item.eval_harness): HeatSquare(rate=item.pass_at_1) for item in transfer}
    rows = tuple(
        (train, tuple(found.get((train, evaluated), HeatSquare(rate=None)) for evaluated in columns))
        for train in dict.fromkeys(item.train_harness for item in transfer)
    )
    return HeatMap(name="", columns=columns, rows=rows)
