"""Models trained under one harness, evaluated under another."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from orchard_core.evals.attempts import Attempts, rate
from orchard_core.evals.matrix_report import Cell, TransferCell
from orchard_core.evals.statistics import pass_at_k


def transfer_table(cells: Sequence[Cell]) -> tuple[TransferCell, ...]:
    """One entry for each pair of training and evaluating harness, over every task of their cells; empty
    unless some model says where it was trained."""
    by_pair: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        if cell.train_harness:
            by_pair.setdefault((cell.train_harness, cell.key.harness), []).append(cell)
    return tuple(
        TransferCell(
            train_harness=trained,
            eval_harness=evaluated,
            pass_at_1=rate(_clusters(members), partial(pass_at_k, k=1)),
        )
        for (trained, evaluated), members in by_pair.items()
    )


def _clusters(cells: Sequence[Cell]) -> list[Attempts]:
    """Attempts of several models at one task of one task set are one cluster."""
    merged: dict[tuple[str, str], list[int]] = {}
    for cell in cells:
        for task in cell.tasks:
            counts = merged.setdefault((cell.key.taskset, task.task), [0, 0, 0])
            for place, count in enumerate((task.planned, task.valid, task.passed)):
                counts[place] += count
    return [
        Attempts(task=task, planned=planned, valid=valid, passed=passed)
        for (_, task), (planned, valid, passed) in merged.items()
    ]
