"""Counts of a matrix, kept up to date by the events of its cells."""

from __future__ import annotations

from dataclasses import dataclass, field

from orchard_core.cli.display.progress import Progress
from orchard_core.rollout.matrix.key import CellKey
from orchard_core.rollout.store.state import RunState
from orchard_core.types.events import Event, RolloutFinished, RolloutStarted

PASSED = 1.0
"""A score of at least this has passed."""


@dataclass(slots=True, kw_only=True)
class CellProgress:
    """The state of one cell, earlier starts included."""

    key: CellKey
    """Which."""
    run: Progress = field(default_factory=Progress)
    """This start."""
    planned_before: int = 0
    """Rollouts that earlier starts had planned."""
    cost_before: float = 0.0
    """US dollars that earlier starts used up, as far as known."""
    unpriced_before: bool = False
    """Of which some are unknown."""
    scores: dict[str, float | None] = field(default_factory=dict)
    """By rollout id, of those that have finished."""
    refused: str = ""
    """Why it cannot be run."""

    def handle(self, event: Event) -> None:
        """Take in one event of the cell."""
        self.run.handle(event)
        if isinstance(event, RolloutStarted):
            self.scores.pop(event.rollout, None)
        elif isinstance(event, RolloutFinished) and not event.will_retry:
            self.scores[event.rollout] = event.score

    @property
    def planned(self) -> int:
        """Rollouts it consists of, as far as known."""
        return max(self.run.planned, self.planned_before)

    @property
    def passed(self) -> int:
        """Of the finished ones, those that passed."""
        return sum(score is not None and score >= PASSED for score in self.scores.values())

    @property
    def rate(self) -> float | None:
        """Passed of finished; None while none has."""
        return self.passed / len(self.scores) if self.scores else None

    @property
    def errors(self) -> int:
        """Finished without a score."""
        return sum(score is None for score in self.scores.values())

    @property
    def cost_usd(self) -> float:
        """US dollars, as far as known."""
        return self.cost_before + self.run.cost_usd

    @property
    def unpriced(self) -> bool:
        """Some cost is unknown."""
        return self.unpriced_before or self.run.unpriced


@dataclass(slots=True, kw_only=True)
class MatrixProgress:
    """The state of a matrix."""

    cells: dict[CellKey, CellProgress] = field(default_factory=dict)
    """In the order they were opened."""
    capped: str = ""
    """The bound that was reached."""
    started_at: float | None = None
    """When the first event came, seconds since the epoch."""
    now: float = 0.0
    """When the newest came."""

    def open(self, key: CellKey, state: RunState) -> None:
        """A cell can be run."""
        spent = state.spent()
        cell = self.cell(key)
        cell.planned_before = len(state.planned)
        cell.cost_before, cell.unpriced_before = spent.cost_usd or 0.0, spent.cost_usd is None
        cell.scores = {name: entry.score for name, entry in state.finished.items()}

    def handle(self, key: CellKey, event: Event) -> None:
        """Take in one event."""
        if self.started_at is None:
            self.started_at = event.at
        self.now = max(self.now, event.at)
        self.cell(key).handle(event)

    def cell(self, key: CellKey) -> CellProgress:
        """Its row."""
        return self.cells.setdefault(key, CellProgress(key=key))

    @property
    def planned(self) -> int:
        """Rollouts of all cells that can be run."""
        return sum(cell.planned for cell in self.cells.values() if not cell.refused)

    @property
    def finished(self) -> int:
        """Of these, finished."""
        return sum(len(cell.scores) for cell in self.cells.values() if not cell.refused)

    @property
    def running(self) -> int:
        """Rollouts that have a slot."""
        return sum(len(cell.run.running) for cell in self.cells.values())

    @property
    def cost_usd(self) -> float:
        """US dollars, as far as known."""
        return sum(cell.cost_usd for cell in self.cells.values())

    @property
    def unpriced(self) -> bool:
        """Some cost is unknown."""
        return any(cell.unpriced for cell in self.cells.values())

    @property
    def ended(self) -> bool:
        """Every cell has ended."""
        cells = [cell for cell in self.cells.values() if not cell.refused]
        return bool(cells) and all(cell.run.ended for cell in cells)

    def elapsed_s(self, now: float) -> float:
        """Since this start."""
        return (
            0.0 if self.started_at is None else max(0.0, (self.now if self.ended else now) - self.started_at)
        )

    def eta_s(self, now: float) -> float | None:
        """Seconds left at the rate of this start so far; None until one has finished."""
        left = self.planned - self.finished
        done = sum(cell.run.done for cell in self.cells.values())
        if left <= 0:
            return 0.0
        return self.elapsed_s(now) / done * left if done else None
