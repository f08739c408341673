"""The rollouts that credit is assigned to: which passed, which did not, and which say nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

from orchard_core.datasets.credit.estimator import Item
from orchard_core.datasets.reading import Source, source_rows
from orchard_core.datasets.rows import rollout_rows
from orchard_core.errors import CreditRefused, RecordCorrupt
from orchard_core.rollout.store.entry import Finished
from orchard_core.rollout.store.run import Run, open_run
from orchard_core.types.credit import Credit
from orchard_core.types.dataset import DatasetRow
from orchard_core.types.sample import SampleLabel

PASSED = 1.0
"""A score of at least this has passed, as in reports."""


class Standing(StrEnum):
    """What a rollout's score says."""

    RESOLVED = "resolved"
    """It passed: all of it is trained on."""
    UNRESOLVED = "unresolved"
    """It did not: it is estimated."""
    LEFT_OUT = "left_out"
    """It has no score, so nobody knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One rollout, not yet read."""

    rollout: str
    """Its id."""
    score: float | None
    """Its score."""
    tries: int
    """Which try of it was kept; 0: unknown."""
    ended: str
    """How it ended."""
    load: Callable[[], Item | None]
    """Reads it; None: it has no conversation. Raises RecordCorrupt."""

    def standing(self, threshold: float) -> Standing:
        """What its score says."""
        if self.score is None:
            return Standing.LEFT_OUT
        return Standing.RESOLVED if self.score >= threshold else Standing.UNRESOLVED

    @property
    def stamp(self) -> dict[str, Any]:
        """What a credit notes of it, so that one that was graded or run again is credited again."""
        return stamp_of(self.score, tries=self.tries)

    def is_of(self, credit: Credit) -> bool:
        """Whether a credit was given to the rollout as it is now."""
        return all(credit.settings.get(name) == value for name, value in self.stamp.items())


def stamp_of(score: float | None, *, tries: int) -> dict[str, Any]:
    """See `Candidate.stamp`; `tries` 0: unknown."""
    return {"score": score, "tries": tries}


def run_candidates(root: Path, directory: Path) -> Iterator[Candidate]:
    """Every finished rollout of a run, in the order of its plan, from the journal alone."""
    run = open_run(root)
    for entry in run.finished():
        yield Candidate(
            rollout=entry.id,
            score=entry.score,
            tries=entry.tries,
            ended=entry.outcome.value,
            load=partial(_from_run, run, entry, directory),
        )


def row_candidates(source: Source, directory: Path) -> Iterator[Candidate]:
    """The main conversations of a dataset or file, in order.

    Raises CreditRefused for two of one rollout id, DatasetCorrupt for a row that cannot be read.
    """
    seen: set[str] = set()
    for row in source_rows(source):
        if row.label is not SampleLabel.MAIN:
            continue
        if row.rollout in seen:
            raise CreditRefused(
                f"{source.path} holds two rollouts {row.rollout}, and credits are kept by the rollout's id",
                hint="assign credit to the runs they are from, before mixing",
            )
        seen.add(row.rollout)
        yield Candidate(
            rollout=row.rollout,
            score=row.reward,
            tries=0,
            ended=row.outcome.value if row.outcome else "unknown",
            load=partial(_from_row, row, directory),
        )


def _from_run(run: Run, entry: Finished, directory: Path) -> Item | None:
    rollout = run.load(entry)
    rows = rollout_rows(rollout, threads=frozenset({SampleLabel.MAIN}), run=run.root.resolve().name)
    if not rows or not rows[0].turns:
        return None
    return Item(row=rows[0], run=run.root, rollout=rollout, directory=directory)


def _from_row(row: DatasetRow, directory: Path) -> Item | None:
    return Item(row=row, directory=directory) if row.turns else None


def read_item(candidate: Candidate) -> Item | str:
    """The rollout, or why it is left out."""
    try:
        return candidate.load() or "no answer of a model"
    except RecordCorrupt as error:
        return f"damaged: {error.message}"
