"""How far the assigning of credit has come."""

from __future__ import annotations

from dataclasses import dataclass

from orchard_core.types.credit import Credit


@dataclass(slots=True, kw_only=True)
class CreditProgress:
    """The state of one start. Its clock is set by who fills it."""

    planned: int = 0
    """Rollouts to be credited by this start and the ones before."""
    before: int = 0
    """Of these, credited before."""
    started_at: float | None = None
    """When this start began, seconds since the epoch."""
    ended_at: float | None = None
    """When it ended."""
    resolved: int = 0
    """Credited by this start: passed."""
    annotated: int = 0
    """With a curve."""
    failed: int = 0
    """With an error."""
    kept: int = 0
    """Answers of the annotated ones that are trained on."""
    turns: int = 0
    """Of so many."""
    cost_usd: float = 0.0
    """US dollars spent, as far as known."""
    unpriced: bool = False
    """Some cost is unknown."""
    expected_usd: float | None = None
    """US dollars that it was expected to take in all; None: unknown."""
    measured: int = 0
    """Continuations run by this start."""
    expected_rollouts: int = 0
    """Continuations that it was expected to take."""

    def add(self, credit: Credit) -> None:
        """Take in one credit."""
        if credit.resolved:
            self.resolved += 1
        elif credit.error:
            self.failed += 1
        else:
            self.annotated += 1
            self.kept += sum(credit.mask)
            self.turns += len(credit.mask)

    @property
    def done(self) -> int:
        """Credited by this start."""
        return self.resolved + self.annotated + self.failed

    @property
    def finished(self) -> int:
        """Credited in all."""
        return self.before + self.done

    def elapsed_s(self, now: float) -> float:
        """Since this start, until its end."""
        if self.started_at is None:
            return 0.0
        return max(0.0, (now if self.ended_at is None else self.ended_at) - self.started_at)

    def eta_s(self, now: float) -> float | None:
        """Seconds left at the rate of the rollouts that were estimated; None until one was."""
        left, estimated = self.planned - self.finished, self.annotated + self.failed
        if left <= 0:
            return 0.0
        return self.elapsed_s(now) / estimated * left if estimated else None
