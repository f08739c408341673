"""Tasks by cells: every attempt as one mark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from orchard_core.evals.html.verdict import Verdict
from orchard_core.evals.html.view import CellView, RolloutView

Solved = Literal["all", "some", "none"]
_FEW = 8
_SHORT = 28


@dataclass(frozen=True, slots=True, kw_only=True)
class GridRow:
    """One task."""

    task: str
    """Its id."""
    solved: Solved
    """Whether all, some or none of its attempts in all cells passed."""
    marks: tuple[tuple[RolloutView, ...], ...]
    """Attempts by cell; empty where a cell does not have the task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """One task set."""

    taskset: str
    """Its written form."""
    cells: tuple[CellView, ...]
    """Columns."""
    rows: tuple[GridRow, ...]
    """Tasks in the order of the plan."""
    counts: Mapping[Solved, int]
    """Tasks by how much of them was solved."""

    @property
    def short(self) -> bool:
        """Every task's id fits into one line."""
        return max((len(row.task) for row in self.rows), default=0) <= _SHORT

    @property
    def few(self) -> bool:
        """The attempts at a task fit into one line."""
        return max((len(marks) for row in self.rows for marks in row.marks), default=0) <= _FEW


def grids(cells: Sequence[CellView]) -> tuple[Grid, ...]:
    """One a task set, in the order asked for."""
    return tuple(
        _grid(taskset, tuple(view for view in cells if view.cell.key.taskset == taskset))
        for taskset in dict.fromkeys(view.cell.key.taskset for view in cells)
    )


def _grid(taskset: str, cells: tuple[CellView, ...]) -> Grid:
    by_cell = [_by_task(view) for view in cells]
    tasks = dict.fromkeys(task for found in by_cell for task in found)
    rows = tuple(_row(task, tuple(found.get(task, ()) for found in by_cell)) for task in tasks)
    return Grid(taskset=taskset, cells=cells, rows=rows, counts=Counter(row.solved for row in rows))


def _by_task(view: CellView) -> dict[str, tuple[RolloutView, ...]]:
    found: dict[str, list[RolloutView]] = {}
    for rollout in view.rollouts:
        found.setdefault(rollout.task, []).append(rollout)
    return {task: tuple(rollouts) for task, rollouts in found.items()}


def _row(task: str, marks: tuple[tuple[RolloutView, ...], ...]) -> GridRow:
    passed = [rollout.verdict is Verdict.PASSED for rollouts in marks for rollout in rollouts]
    solved: Solved = "all" if passed and all(passed) else "some" if any(passed) else "none"
    return GridRow(task=task, solved=solved, marks=marks)
