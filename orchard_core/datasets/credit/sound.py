"""Whether the parts of a credit fit each other."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from orchard_core.types.credit import Credit


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What does not fit."""

    field: str
    """The field."""
    what: str
    """For people."""


def fault_of(credit: Credit) -> Fault | None:
    """The first fault, or None. With T turns: a mask of T, T + 1 points or none, segments in order."""
    turns = len(credit.mask)
    if any(entry not in (0, 1) for entry in credit.mask):
        return Fault(field="mask", what="it holds something other than 0 and 1")
    if credit.error and any(credit.mask):
        return Fault(field="mask", what="a credit with an error trains on nothing")
    if credit.points and [point.turn for point in credit.points] != list(range(turns + 1)):
        return Fault(field="points", what=f"not one point for each of the turns 0 to {turns}")
    # Written so that a NaN does not pass.
    if not all(0.0 <= point.value <= 1.0 for point in credit.points):
        return Fault(field="points", what="a value is not between 0 and 1")
    if not all(0 <= segment.start < segment.stop <= turns for segment in credit.segments):
        return Fault(field="segments", what=f"a segment is empty or not within turns 0 to {turns}")
    if not all(before.stop <= after.start for before, after in pairwise(credit.segments)):
        return Fault(field="segments", what="segments overlap or are out of order")
    return None
