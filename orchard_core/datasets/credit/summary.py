"""What directories of credits hold, in figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import median
from typing import Self

from pydantic import Field

from orchard_core.types.base import Record
from orchard_core.types.credit import Credit


class CreditSummary(Record):
    """Counts over all credits of one or more directories."""

    resolved: int = 0
    """Rollouts that passed; trained on whole."""
    annotated: int = 0
    """Unresolved rollouts that have a curve."""
    without_rise: int = 0
    """Of these, those without a segment, of which nothing is trained on."""
    failed: int = 0
    """Unresolved rollouts that could not be estimated and are left out of training."""
    again: int = 0
    """Of these, those that the next start tries again."""
    errors: Mapping[str, int] = Field(default_factory=dict)
    """How often each error occurred."""
    segments: int = 0
    """Segments, after merging."""
    median_length: float | None = None
    """Median length of a segment in answers; None: there is none."""
    turns: int = 0
    """Answers of the annotated rollouts."""
    kept: int = 0
    """Of these, trained on."""
    rollouts: int = 0
    """Rollouts spent on measuring."""
    invalid: int = 0
    """Of these, invalid: they say nothing about the state they started from."""
    cost_usd: float | None = 0.0
    """US dollars; None: some of it is unknown."""

    @property
    def share(self) -> float | None:
        """Share of the annotated rollouts' answers that is trained on."""
        return self.kept / self.turns if self.turns else None

    @classmethod
    def of(cls, found: Iterable[Credit]) -> Self:
        """Over credits, the last one of each rollout."""
        tally = _Tally()
        for credit in found:
            tally.add(credit)
        return cls(
            **tally.counts,
            errors=dict(sorted(tally.errors.items(), key=lambda pair: -pair[1])),
            median_length=float(median(tally.lengths)) if tally.lengths else None,
            cost_usd=tally.cost_usd,
        )


class _Tally:
    def __init__(self) -> None:
        names = (
            "resolved",
            "annotated",
            "without_rise",
            "failed",
            "again",
            "segments",
            "turns",
            "kept",
            "rollouts",
            "invalid",
        )
        self.counts = dict.fromkeys(names, 0)
        self.errors: dict[str, int] = {}
        self.lengths: list[int] = []
        self.cost_usd: float | None = 0.0

    def add(self, credit: Credit) -> None:
        known = self.cost_usd is not None and credit.cost_usd is not None
        self.cost_usd = (self.cost_usd or 0.0) + (credit.cost_usd or 0.0) if known else None
        self.counts["rollouts"] += credit.rollouts
        invalid = credit.settings.get("invalid")
        self.counts["invalid"] += invalid if credit.rollouts and isinstance(invalid, int) else 0
        if credit.resolved:
            self.counts["resolved"] += 1
        elif credit.error:
            self.counts["failed"] += 1
            self.counts["again"] += credit.again
            self.errors[credit.error] = self.errors.get(credit.error, 0) + 1
        else:
            self._curve(credit)

    def _curve(self, credit: Credit) -> None:
        self.counts["annotated"] += 1
        self.counts["without_rise"] += not credit.segments
        self.counts["segments"] += len(credit.segments)
        self.counts["turns"] += len(credit.mask)
        self.counts["kept"] += sum(credit.mask)
        self.lengths += [segment.stop - segment.start for segment in credit.segments]
