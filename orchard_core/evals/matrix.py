"""What a matrix says, from its journals alone; no shard is opened."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations
from pathlib import Path

from orchard_core.errors import RunNotFound, StoreError
from orchard_core.evals.attempts import Attempts, count_attempts
from orchard_core.evals.matrix_report import (
    Cell,
    CellKey,
    MatrixReport,
    PairedDifference,
    RefusedCell,
    RolloutLine,
    TaskLine,
)
from orchard_core.evals.paired import PAIRED_METHOD, holm, mean_difference, sign_flip_p
from orchard_core.evals.report import report_of
from orchard_core.evals.transfer import transfer_table
from orchard_core.rollout.matrix.plan import CELLS, cell_directory, is_matrix, read_plan
from orchard_core.rollout.store.entry import Finished, Planned
from orchard_core.rollout.store.run import Run, open_run
from orchard_core.rollout.store.state import RunState


def build_matrix(path: str | Path, *, threshold: float = 1.0) -> MatrixReport:
    """Read a matrix directory, or a run directory as a matrix of one cell. Raises RunNotFound."""
    root = Path(path)
    refused: list[RefusedCell] = []
    if is_matrix(root):
        cells, refused = _cells(root, threshold)
    else:
        run = open_run(root)
        config = run.config
        key = CellKey(harness=config.harness_text, model=config.model_text, taskset=config.taskset)
        cells = [_cell(key, run, ".", threshold)]
    return MatrixReport(
        root=str(root),
        threshold=threshold,
        cells=tuple(cells),
        refused=tuple(refused),
        differences=tuple(paired_differences(cells)),
        transfer=transfer_table(cells),
        paired_method=PAIRED_METHOD,
    )


def _cells(root: Path, threshold: float) -> tuple[list[Cell], list[RefusedCell]]:
    cells: list[Cell] = []
    refused: list[RefusedCell] = []
    for planned in read_plan(root).cells:
        key = planned.key
        directory = cell_directory(root, key)
        reason = planned.refused
        try:
            cells.append(_cell(key, open_run(directory), f"{CELLS}/{key.slug}", threshold))
        except RunNotFound:
            refused.append(RefusedCell(key=key, reason=reason))
        except StoreError as error:  # one damaged cell must not hide the others
            refused.append(RefusedCell(key=key, reason=error.message))
        else:
            refused += [RefusedCell(key=key, reason=reason)] if reason else []
    return cells, refused


def _cell(key: CellKey, run: Run, directory: str, threshold: float) -> Cell:
    state = run.state()
    planned = list(state.planned.values())
    attempts = count_attempts(planned, state.finished.values(), threshold=threshold)
    trained = run.config.trained
    return Cell(
        key=key,
        run=directory,
        report=report_of(run, state, threshold=threshold),
        tasks=tuple(_task_lines(attempts, planned, state)),
        train_harness=trained.harness if trained else "",
    )


def _task_lines(
    attempts: Iterable[Attempts], planned: Iterable[Planned], state: RunState
) -> Iterable[TaskLine]:
    lines: dict[str, list[RolloutLine]] = {}
    for item in planned:
        lines.setdefault(item.task, []).append(_rollout_line(item, state.finished.get(item.id)))
    for task in attempts:
        yield TaskLine(
            task=task.task,
            planned=task.planned,
            valid=task.valid,
            passed=task.passed,
            rollouts=tuple(sorted(lines[task.task], key=lambda line: line.attempt)),
        )


def _rollout_line(planned: Planned, entry: Finished | None) -> RolloutLine:
    if entry is None:
        return RolloutLine(id=planned.id, attempt=planned.attempt, outcome=None, attribution=None, score=None)
    return RolloutLine(
        id=entry.id,
        attempt=entry.attempt,
        outcome=entry.outcome,
        attribution=entry.attribution,
        score=entry.score,
        turns=entry.turns,
        tokens=entry.usage.total,
        cost_usd=entry.cost_usd,
        wall_clock_s=entry.finished_at - entry.started_at,
        error=entry.error or "",
    )


def paired_differences(cells: Sequence[Cell]) -> list[PairedDifference]:
    """Every pair of cells of one task set, their p-values corrected for all of them."""
    found = [
        _difference(left, right)
        for left, right in combinations(cells, 2)
        if left.key.taskset == right.key.taskset
    ]
    adjusted = holm([item.p_value for item in found])
    return [
        item.model_copy(update={"p_adjusted": value}) for item, value in zip(found, adjusted, strict=True)
    ]


def _difference(left: Cell, right: Cell) -> PairedDifference:
    values = paired_rates(left.tasks, right.tasks)
    return PairedDifference(
        left=left.key,
        right=right.key,
        tasks=len(values),
        difference=mean_difference([float(value) for value in values]),
        p_value=sign_flip_p(values) if len(values) > 1 else None,
        p_adjusted=None,
    )


def paired_rates(left: Iterable[TaskLine], right: Iterable[TaskLine]) -> list[Fraction]:
    """Right's pass rate less left's at each task of both, over everything planned."""
    ours = {task.task: task for task in left}
    return [
        Fraction(task.passed, task.planned) - Fraction(ours[task.task].passed, ours[task.task].planned)
        for task in right
        if task.task in ours
    ]
