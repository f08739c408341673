"""From a few estimated turns to a whole value curve.

The paper (arXiv 2605.15040) has a judge estimate V(s_t) = P(resolved | history up to t, outcome) at a sparse
set of key steps and interpolates the rest; how is not stated. What is chosen here, and its names:

- in between: `linear` (the rise is spread evenly over the answers between two key steps) or `step` (the value
  stays what it was until the next key step, so the whole rise is credited to the answer that leads into it);
- the beginning: when turn 0 was not estimated it has the value of the first turn that was, so that no rise is
  made up;
- the end, V(s_T): `outcome` pins it to what is known, 0 for an unresolved rollout, whatever was estimated for
  it; `estimate` keeps what was estimated, and where nothing was, the value of the last turn that was.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from orchard_core.types.credit import ValuePoint


class Interpolation(StrEnum):
    """How the value between two estimated turns is filled in."""

    LINEAR = "linear"
    """On the straight line between them."""
    STEP = "step"
    """As at the earlier one."""


class CurveEnd(StrEnum):
    """What V(s_T) is, the value after the last answer."""

    OUTCOME = "outcome"
    """What the rollout came to: 0 when it is unresolved."""
    ESTIMATE = "estimate"
    """What was estimated, as at any other turn."""


def full_curve(
    points: Iterable[ValuePoint],
    turns: int,
    *,
    interpolation: Interpolation = Interpolation.LINEAR,
    end: float | None = None,
) -> tuple[ValuePoint, ...]:
    """[T+1] Every turn of a rollout with T answers, from the estimated ones; `end` pins V(s_T).

    Values are clamped to [0, 1]. A point that was put in has `estimated` false, and so has a pinned end, as
    nobody estimated it. Raises ValueError without a point, for two at one turn, for one outside 0..T, and
    for a value that is no number.
    """
    given = list(points)
    known = {point.turn: _clamped(point) for point in given}
    if not given or len(known) < len(given) or not all(0 <= turn <= turns for turn in known):
        raise ValueError(f"turns {sorted(point.turn for point in given)} are no key steps of 0..{turns}")
    if end is not None:
        known[turns] = _clamped(ValuePoint(turn=turns, value=end, estimated=False))
    places = sorted(known)
    return tuple(
        known[turn] if turn in known else _between(turn, places, known, interpolation)
        for turn in range(turns + 1)
    )


def _clamped(point: ValuePoint) -> ValuePoint:
    if math.isnan(point.value):
        raise ValueError(f"the value of turn {point.turn} is no number")
    value = min(1.0, max(0.0, point.value))
    return point if value == point.value else point.model_copy(update={"value": value})


def _between(
    turn: int, places: Sequence[int], known: Mapping[int, ValuePoint], interpolation: Interpolation
) -> ValuePoint:
    after = bisect_left(places, turn)
    left, right = places[max(0, after - 1)], places[min(after, len(places) - 1)]
    value = known[left].value
    if interpolation is Interpolation.LINEAR and left < right:
        value += (known[right].value - value) * (turn - left) / (right - left)
    return ValuePoint(turn=turn, value=value, estimated=False)
