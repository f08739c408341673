"""A matrix as a grid: pass rates by harness and model, and every attempt at every task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchard_core.evals.attempts import Rate, rate
from orchard_core.evals.statistics import pass_at_k
from orchard_core.viewer.sources.line import Line
from orchard_core.viewer.sources.matrix import CellSource, MatrixSource

PAGE = 60
"""Tasks of one page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellView:
    """One combination."""

    cell: CellSource
    """Which."""
    done: int
    """Rollouts finished."""
    planned: int
    """Rollouts there will be."""
    pass_at_1: Rate | None
    """None: it has not started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetView:
    """The cells of one task set."""

    taskset: str
    """Which."""
    harnesses: Sequence[str]
    """Rows."""
    models: Sequence[str]
    """Columns."""
    cells: Mapping[tuple[str, str], CellView]
    """By harness and model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixView:
    """The page."""

    sets: Sequence[SetView]
    """One a task set."""
    columns: Sequence[CellView]
    """Cells that have begun, in order."""
    tasks: Sequence[tuple[str, str, Sequence[Sequence[Line]]]]
    """Task set, task, and its attempts in each column."""
    page: int
    """From 1."""
    pages: int
    """How many there are."""


def matrix_view(source: MatrixSource, *, page: int = 1) -> MatrixView:
    """From the journals alone."""
    cells = [_cell(cell) for cell in source.cells()]
    begun = [view for view in cells if view.cell.run is not None]
    attempts = _attempts(begun)
    names = sorted({(taskset, task) for taskset, task, _ in attempts})
    pages = max(1, -(-len(names) // PAGE))
    page = min(max(page, 1), pages)
    shown = names[(page - 1) * PAGE : page * PAGE]
    rows = [
        (taskset, task, [attempts.get((taskset, task, at), []) for at in range(len(begun))])
        for taskset, task in shown
    ]
    return MatrixView(sets=_sets(cells), columns=begun, tasks=rows, page=page, pages=pages)


def _cell(cell: CellSource) -> CellView:
    if cell.run is None:
        return CellView(cell=cell, done=0, planned=0, pass_at_1=None)
    now = cell.run.lines()
    figure = rate(cell.run.attempts(), lambda n, c: pass_at_k(n, c, 1))
    return CellView(cell=cell, done=len(now.lines), planned=now.planned, pass_at_1=figure)


def _attempts(begun: Sequence[CellView]) -> dict[tuple[str, str, int], list[Line]]:
    found: dict[tuple[str, str, int], list[Line]] = {}
    for at, view in enumerate(begun):
        for line in view.cell.run.lines().lines if view.cell.run is not None else ():
            found.setdefault((line.taskset, line.task, at), []).append(line)
    for lines in found.values():
        lines.sort(key=lambda line: line.attempt)
    return found


def _sets(cells: Sequence[CellView]) -> list[SetView]:
    views = []
    for taskset in dict.fromkeys(view.cell.key.taskset for view in cells):
        held = [view for view in cells if view.cell.key.taskset == taskset]
        views.append(
            SetView(
                taskset=taskset,
                harnesses=list(dict.fromkeys(view.cell.key.harness for view in held)),
                models=list(dict.fromkeys(view.cell.key.model for view in held)),
                cells={(view.cell.key.harness, view.cell.key.model): view for view in held},
            )
        )
    return views
