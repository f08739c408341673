"""What a matrix of runs says, as data: `build_matrix` makes it, Markdown, JSON and HTML show it."""

from __future__ import annotations

from orchard_core.evals.attempts import Rate
from orchard_core.evals.paired import MeanDifference
from orchard_core.evals.report import Report
from orchard_core.evals.statistics import METHOD
from orchard_core.rollout.matrix.key import CellKey as CellKey
from orchard_core.types.base import Record
from orchard_core.types.rollout import Attribution, Outcome


class RolloutLine(Record):
    """One attempt of a cell, as far as a table shows it."""

    id: str
    """The rollout's id, which `orchard show` takes."""
    attempt: int
    """From 0."""
    outcome: Outcome | None
    """How it ended; None while it is planned or running."""
    attribution: Attribution | None
    """Whose doing that is."""
    score: float | None
    """None: not scored."""
    turns: int = 0
    """Model answers acted upon."""
    tokens: int = 0
    """Tokens of all its calls."""
    cost_usd: float | None = None
    """US dollars; None: unknown."""
    wall_clock_s: float = 0.0
    """Seconds from its start to its record."""
    error: str = ""
    """Class of the error that decided the outcome."""


class TaskLine(Record):
    """One task of a cell."""

    task: str
    """The task's id."""
    planned: int
    """Attempts planned."""
    valid: int
    """Attempts that say something about the agent."""
    passed: int
    """Attempts with a score of at least the threshold."""
    rollouts: tuple[RolloutLine, ...]
    """By attempt."""


class Cell(Record):
    """One combination and what came of it."""

    key: CellKey
    """Which."""
    run: str
    """Its run directory, relative to the matrix directory."""
    report: Report
    """The same as `orchard report` on that directory."""
    tasks: tuple[TaskLine, ...]
    """In the order of the plan."""
    train_harness: str = ""
    """The harness whose rollouts the model was trained on, when its checkpoint says so."""


class RefusedCell(Record):
    """A combination that was asked for and could not be run, or not any further."""

    key: CellKey
    """Which."""
    reason: str
    """Why it could not be run; empty: it has not started yet."""


class PairedDifference(Record):
    """Two cells of one task set compared task by task."""

    left: CellKey
    """The one."""
    right: CellKey
    """The other."""
    tasks: int
    """Tasks that both have."""
    difference: MeanDifference | None
    """Mean over tasks of right's pass rate less left's, over everything planned; between -1 and 1."""
    p_value: float | None
    """Two-sided; None when nothing can be said."""
    p_adjusted: float | None
    """Corrected for all comparisons of the matrix."""


class TransferCell(Record):
    """Pass rate of models trained under one harness and evaluated under another."""

    train_harness: str
    """Where the training rollouts came from."""
    eval_harness: str
    """Where it was evaluated."""
    pass_at_1: Rate
    """Over the cells of that pair."""


class MatrixReport(Record):
    """A whole matrix. One run alone is a matrix of one cell."""

    root: str
    """The matrix directory, or the run directory."""
    threshold: float
    """A score of at least this has passed."""
    cells: tuple[Cell, ...]
    """In the order they were asked for."""
    refused: tuple[RefusedCell, ...] = ()
    """Cells that the newest start refused, and cells without a run."""
    differences: tuple[PairedDifference, ...] = ()
    """Every pair of cells of one task set."""
    transfer: tuple[TransferCell, ...] = ()
    """Empty when no checkpoint names its training harness."""
    method: str = METHOD
    """How the intervals are made."""
    paired_method: str = ""
    """How differences are tested and corrected."""
