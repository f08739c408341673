"""Several runs or matrices, given side by side, as one matrix."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from orchard_core.evals.matrix import paired_differences
from orchard_core.evals.matrix_report import Cell, CellKey, MatrixReport
from orchard_core.evals.transfer import transfer_table


def join(reports: Sequence[MatrixReport]) -> MatrixReport:
    """One report over all their cells, each compared with each. A single report is given back unchanged.

    Where two cells have one key, the later one's harness bears its run directory, so that both stay apart.
    """
    first = reports[0]
    if len(reports) == 1:
        return first
    cells: list[Cell] = []
    for report in reports:
        for cell in report.cells:
            cells.append(_moved(cell, Path(report.root), {each.key for each in cells}))
    return first.model_copy(
        update={
            "root": "",
            "cells": tuple(cells),
            "refused": tuple(item for report in reports for item in report.refused),
            "differences": tuple(paired_differences(cells)),
            "transfer": transfer_table(cells),
        }
    )


def _moved(cell: Cell, root: Path, taken: set[CellKey]) -> Cell:
    run, key = str(root / cell.run), cell.key
    if key in taken:
        key = key.model_copy(update={"harness": f"{key.harness} ({run})"})
    return cell.model_copy(update={"run": run, "key": key})
