"""Which turns are measured: a coarse grid first, then halves of the pieces over which the value moves.

Everything here follows from what was measured, so that a start which was interrupted goes on as if it had not
been.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from orchard_core.datasets.credit.branch.interval import Interval, interval, surely_moves
from orchard_core.datasets.credit.branch.options import BranchOptions
from orchard_core.rollout.branching.branch import Branch
from orchard_core.types.credit import ValuePoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One turn."""

    turn: int
    """t."""
    rewards: tuple[float, ...]
    """Of the continuations that count, between 0 and 1."""
    invalid: int
    """Continuations that do not."""
    interval: Interval
    """Where the value lies."""

    @classmethod
    def of(cls, turn: int, branches: Collection[Branch], options: BranchOptions) -> Measured:
        """From the continuations of a turn."""
        rewards = tuple(min(1.0, max(0.0, one.reward)) for one in branches if one.reward is not None)
        held = interval(rewards, method=options.interval, level=options.level)
        return cls(turn=turn, rewards=rewards, invalid=len(branches) - len(rewards), interval=held)

    @property
    def mean(self) -> float:
        """The measured value; without any reward there is none, see `counts`."""
        return fmean(self.rewards)

    def counts(self, options: BranchOptions) -> bool:
        """Whether the turn is part of the curve."""
        total = len(self.rewards) + self.invalid
        return bool(self.rewards) and self.invalid <= options.invalid_share * total

    def point(self) -> ValuePoint:
        """As it is stored."""
        low, high = self.interval
        return ValuePoint(
            turn=self.turn,
            value=self.mean,
            low=low,
            high=high,
            samples=len(self.rewards),
            invalid=self.invalid,
        )


def first_turns(turns: int, options: BranchOptions) -> list[int]:
    """The coarse grid over T answers, as far as the budget goes; turn 0 is always in it."""
    pieces = min(options.grid, turns, options.max_rollouts // options.k)
    return sorted({turns * piece // pieces for piece in range(pieces)})


def next_turns(
    measured: Mapping[int, Measured], turns: int, outcome: float, options: BranchOptions, *, left: int
) -> list[int]:
    """What to measure next with `left` continuations; nothing: the curve is done.

    `outcome` is V(s_T), which is known. Pieces over which the value moves most come first.
    """
    known = {turn: (one.mean, one.interval) for turn, one in measured.items() if one.counts(options)}
    known[turns] = (outcome, (outcome, outcome))
    moving: list[tuple[float, int]] = []
    for start, stop in pairwise(sorted(known)):
        before, after = known[start], known[stop]
        by = abs(after[0] - before[0])
        moves = by >= options.step or surely_moves(before, after)
        middle = _middle(start, stop, measured)
        if moves and stop - start > options.resolution and middle is not None:
            moving.append((-by, middle))
    return [turn for _, turn in sorted(moving)[: left // options.k]]


def _middle(start: int, stop: int, tried: Collection[int]) -> int | None:
    """The turn nearest to the middle that was not tried; None: there is none."""
    free = [turn for turn in range(start + 1, stop) if turn not in tried]
    return min(free, key=lambda turn: (abs(2 * turn - start - stop), turn), default=None)


def expected_rollouts(turns: int, options: BranchOptions) -> int:
    """Continuations of a curve that moves in one place: the grid, and halving one piece of it down."""
    grid = len(first_turns(turns, options))
    halvings = max(0, math.ceil(math.log2(max(1.0, turns / grid / options.resolution))))
    return min(most_rollouts(turns, options), options.k * (grid + halvings))


def most_rollouts(turns: int, options: BranchOptions) -> int:
    """Continuations that one trajectory takes at most."""
    return min(options.max_rollouts // options.k, turns) * options.k
