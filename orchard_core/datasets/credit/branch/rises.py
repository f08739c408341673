"""Rises that are sure: the credit of an answer is what it is at least."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from orchard_core.datasets.credit.branch.interval import Interval, lower_difference
from orchard_core.datasets.credit.merge import merge_rule
from orchard_core.datasets.credit.rules import CreditRules
from orchard_core.datasets.credit.segments import rise_segments, segment_mask
from orchard_core.types.credit import Credit, ValuePoint


def surely_rising(credit: Credit, rules: CreditRules) -> Credit:
    """The credit with the segments and mask of the rule `lower-bound`.

    Between two measured turns the lower end of the difference of their values is spread evenly over the
    answers; with V(s_T) pinned, the last piece ends in a value without doubt. A turn that was put in has no
    interval and is passed over.
    """
    turns = len(credit.mask)
    values = list(accumulate(_lower_credits(credit.points, turns), initial=0.0))
    segments = merge_rule(rules.merge)(rise_segments(values, epsilon=rules.epsilon), turns)
    return credit.model_copy(update={"segments": segments, "mask": segment_mask(segments, turns)})


def _lower_credits(points: Sequence[ValuePoint], turns: int) -> list[float]:
    """[T] The least credit of each answer."""
    known: list[tuple[int, tuple[float, Interval]]] = []
    for point in points:
        if point.samples and point.low is not None and point.high is not None:
            known.append((point.turn, (point.value, (point.low, point.high))))
        elif point.turn == turns:
            known.append((point.turn, (point.value, (point.value, point.value))))
    least = [0.0] * turns
    for (start, before), (stop, after) in pairwise(known):
        least[start:stop] = [lower_difference(before, after) / (stop - start)] * (stop - start)
    return least
