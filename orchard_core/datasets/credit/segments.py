"""From a value curve to what is trained on.

The paper (arXiv 2605.15040): credit c_t = V(s_{t+1}) - V(s_t); a rise segment is a maximal contiguous run
[t_i, t_j] of states with c_t >= eps for every t in [t_i, t_j - 1], eps = 0.05, with no minimum length. Which
answers it trains is not spelt out. Here c_t belongs to answer t, which leads from s_t to s_{t+1}; so the
segment of the states t_i to t_j trains the answers t_i to t_j - 1, those that made the value rise, and the
answer given in the last state is left out (the merge rule `context:1` takes it in).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from orchard_core.types.credit import RiseSegment

EPSILON = 0.05
"""The paper's."""

TOLERANCE = 1e-9
"""A credit this little below epsilon counts as epsilon: 0.3 - 0.25 is less than 0.05 in floating point."""


def credits_of(values: Sequence[float]) -> tuple[float, ...]:
    """[T] c_t of a curve of T + 1 values."""
    return tuple(after - before for before, after in pairwise(values))


def rise_segments(values: Sequence[float], *, epsilon: float = EPSILON) -> tuple[RiseSegment, ...]:
    """The maximal runs of answers whose credit is at least epsilon, in order; no two touch."""
    rises = [credit >= epsilon - TOLERANCE for credit in credits_of(values)]
    edges = [turn for turn, (before, now) in enumerate(pairwise([False, *rises, False])) if before != now]
    return tuple(
        RiseSegment(start=start, stop=stop) for start, stop in zip(edges[::2], edges[1::2], strict=True)
    )


def segment_mask(segments: Iterable[RiseSegment], turns: int) -> tuple[int, ...]:
    """[T] 1 for every answer that lies in a segment."""
    mask = [0] * turns
    for segment in segments:
        for turn in range(max(0, segment.start), min(turns, segment.stop)):
            mask[turn] = 1
    return tuple(mask)
