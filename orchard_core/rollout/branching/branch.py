"""One continuation of a recorded rollout."""

from __future__ import annotations

from enum import StrEnum

from orchard_core.rollout.identity import digest
from orchard_core.types.base import Record
from orchard_core.types.model import Usage
from orchard_core.types.rollout import Attribution, Outcome, Rollout

BRANCH_VERSION = 1
"""Version of Branch; readers refuse a newer one with a clear message."""


class BranchMode(StrEnum):
    """How a branch comes to the state it starts from."""

    RESTORE = "restore"
    """The sandbox's files as they were saved; what was done before is answered from a log."""
    RERUN = "rerun"
    """Everything is done again in a fresh sandbox."""


class Branch(Record):
    """A continuation: the recorded answers before turn t, then the model's own, to the end and its score."""

    schema_version: int = BRANCH_VERSION
    """Version of this record's shape."""
    rollout: str
    """Id of the rollout it continues."""
    origin: str = ""
    """Which record of that rollout, as it may be run or graded again: see `origin_of`."""
    turn: int
    """t, from 0: the first answer that is the model's own."""
    number: int
    """Which of the continuations from there, from 0."""
    seed: int
    """Seed of everything that draws from turn t on."""
    mode: BranchMode
    """How it came to its state."""
    reward: float | None = None
    """Its score; None: it is invalid."""
    invalid: str = ""
    """Why it says nothing about the state; empty: it does."""
    outcome: Outcome | None = None
    """How it ended; None: it was given up before."""
    attribution: Attribution | None = None
    """Whose doing that is."""
    answers: int = 0
    """Answers of the model's own."""
    usage: Usage = Usage()
    """Token counts of those."""
    cost_usd: float | None = 0.0
    """US dollars of those; None: unknown."""
    duration_s: float = 0.0
    """From its start to its score, seconds."""
    record: Rollout | None = None
    """The whole rollout, replayed beginning included; None: not kept."""

    @property
    def valid(self) -> bool:
        """Whether it counts."""
        return not self.invalid

    @property
    def lost(self) -> bool:
        """Whether it is invalid for want of a machine or a model, so that it may be run again."""
        return not self.valid and self.attribution in {Attribution.INFRASTRUCTURE, Attribution.MODEL}


def origin_of(rollout: Rollout) -> str:
    """16 hexadecimal digits that name one record of a rollout."""
    return digest(rollout.id, str(rollout.tries), repr(rollout.started_at))[:16]
