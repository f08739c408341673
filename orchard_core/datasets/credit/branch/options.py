"""What decides a measured curve, and how it is shown."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from pydantic import Field, model_validator

from orchard_core.datasets.credit.branch.interval import IntervalMethod
from orchard_core.rollout.branching.branch import BranchMode
from orchard_core.rollout.branching.recorded import Same
from orchard_core.types.base import Record


class RiseBy(StrEnum):
    """What an answer's credit is when rises are looked for."""

    VALUE = "value"
    """The difference of the two values, as published."""
    LOWER_BOUND = "lower-bound"
    """The lower end of that difference's confidence interval: only rises that are sure."""


class BranchOptions(Record):
    """Options of `--estimator branch`. All of them decide the result, so that credits of two settings never
    lie in one directory."""

    k: int = Field(default=8, ge=2, le=1000)
    """Continuations from each chosen turn."""
    max_rollouts: int = Field(default=64, ge=2)
    """Continuations of one trajectory at most, invalid ones included."""
    grid: int = Field(default=4, ge=1)
    """Pieces that a trajectory is cut into at first: turns 0, T/grid, 2T/grid, ..."""
    step: float = Field(default=0.25, gt=0.0, le=1.0)
    """A piece is halved when the value moves by at least this over it, or surely moves at all."""
    resolution: int = Field(default=1, ge=1)
    """Pieces of so many turns are not halved."""
    width: float = Field(default=0.0, ge=0.0, le=1.0)
    """A turn gets no further continuations once its interval is this narrow, looked at after each
    `batch`; 0: it gets all k. Looking while measuring makes the interval cover less often than it says."""
    batch: int = Field(default=4, ge=1)
    """Continuations between two such looks."""
    invalid_share: float = Field(default=0.5, ge=0.0, lt=1.0)
    """A turn of whose continuations more than this share is invalid is left out of the curve."""
    interval: IntervalMethod = IntervalMethod.WILSON
    """How confidence intervals are made."""
    level: float = Field(default=0.95, gt=0.5, lt=1.0)
    """The rate at which an interval is to hold the true value."""
    rise_by: RiseBy = RiseBy.VALUE
    """What counts as a rise."""
    state: BranchMode | None = None
    """How a branch comes to its state; None: restored where that can be, else done again."""
    same: Same = Same.EXACT
    """When a replayed request is the recorded one."""
    keep: bool = False
    """Keep whole rollouts with the branches, as data to train a value model on."""
    seed: int = 0
    """All seeds of the branches come from it."""

    @model_validator(mode="after")
    def _one_turn_fits(self) -> Self:
        if self.max_rollouts < self.k:
            raise ValueError(f"max_rollouts {self.max_rollouts} is not enough for one turn's k {self.k}")
        return self
