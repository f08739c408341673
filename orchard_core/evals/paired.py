"""Two sides compared task by task: how large the difference is, and whether chance alone could make it.

Interval: each task gives one difference of pass rates, between -1 and 1. To these come two pseudo-tasks with
the differences -1, 1, 0 and 0, each with weight one half (Agresti and Min 2005, "Simple improved confidence
intervals for comparing matched proportions", section 4, there for single matched pairs); then Student's t on
(tasks - 1) degrees of freedom. So a few equal differences do not claim certainty.

p-value: paired sign-flip permutation test (Fisher 1935, "The Design of Experiments", section 21). If the two
sides do not differ, each task's difference is as likely to have the opposite sign. p is the share of all 2^n
sign patterns whose sum is at least as far from 0 as the one seen. It is exact: the sums are counted by
multiplying out the polynomial of (1 + x^(2d)). Where that polynomial would be too large, p is
(1 + hits) / (1 + draws) over seeded random patterns (Phipson and Smyth 2010).

Many comparisons: Holm 1979, which bounds the chance of any false finding without assuming independence.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction

from orchard_core.evals.statistics import student_quantile
from orchard_core.types.base import Record

PAIRED_METHOD = (
    "95% t interval on per-task differences with two pseudo-tasks (Agresti and Min 2005); two-sided paired "
    "sign-flip permutation test over tasks; Holm's correction over all comparisons"
)
DRAWS = 20_000
"""Random sign patterns where the exact count is too large."""
_EXACT_BITS = 1 << 22
"""The exact count may take an integer of so many bits."""


class MeanDifference(Record):
    """A mean over tasks of differences between -1 and 1."""

    value: float
    """The mean of the per-task differences."""
    low: float | None
    """Lower end of the 95% interval; None with fewer than two tasks, from which nothing can be told."""
    high: float | None
    """Upper end, likewise."""
    tasks: int
    """Tasks it is from."""


def mean_difference(values: Sequence[float]) -> MeanDifference | None:
    """The mean of one difference a task, with its interval; None without any."""
    count = len(values)
    if count == 0:
        return None
    mean = math.fsum(values) / count
    if count == 1:
        return MeanDifference(value=mean, low=None, high=None, tasks=1)
    size = count + 2
    centre = mean * count / size
    spread = (math.fsum(value * value for value in values) + 1.0) / size - centre * centre
    half = student_quantile(0.975, count - 1) * math.sqrt(spread / size)
    return MeanDifference(
        value=mean,
        low=max(-1.0, min(mean, centre - half)),
        high=min(1.0, max(mean, centre + half)),
        tasks=count,
    )


def sign_flip_p(differences: Iterable[Fraction], *, seed: int = 0) -> float | None:
    """Two-sided p-value; None without any task. Tasks without a difference say nothing either way."""
    values = list(differences)
    if not values:
        return None
    scale = math.lcm(*(value.denominator for value in values))
    whole = [int(value * scale) for value in values if value]
    shared = math.gcd(*whole) if whole else 1
    sizes = [abs(value) // shared for value in whole]
    seen = abs(sum(whole)) // shared
    if (sum(sizes) + 1) * (len(sizes) + 1) <= _EXACT_BITS:
        return _exact(sizes, seen)
    return _drawn(sizes, seen, seed)


def _exact(sizes: Sequence[int], seen: int) -> float:
    """Coefficients are kept side by side in one integer, each in whole bytes wide enough for 2^n."""
    if seen == 0:
        return 1.0
    width = (len(sizes) + 8) // 8
    counts = 1
    for size in sizes:
        counts += counts << (size * width * 8)  # minus: times 1; plus: times x^size
    reach = (sum(sizes) - seen) // 2  # with plus signs adding up to s, the sum is 2s - sum(sizes)
    low = counts & ((1 << ((reach + 1) * width * 8)) - 1)
    data = low.to_bytes((reach + 1) * width, "little")
    hits = sum(int.from_bytes(data[at : at + width], "little") for at in range(0, len(data), width))
    return min(1.0, 2 * hits / (1 << len(sizes)))


def _drawn(sizes: Sequence[int], seen: int, seed: int) -> float:
    """Of m tasks with one size, the number of plus signs is the number of ones among m random bits."""
    rng = random.Random(seed)  # noqa: S311 - a test of significance, no secret
    groups = Counter(sizes)
    hits = 0
    for _ in range(DRAWS):
        total = sum(size * (2 * rng.getrandbits(m).bit_count() - m) for size, m in groups.items())
        hits += abs(total) >= seen
    return (1 + hits) / (1 + DRAWS)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Each p-value corrected for all of them; None stays None and counts for nothing."""
    known = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    floor = 0.0
    for rank, (p, place) in enumerate(known):
        floor = max(floor, min(1.0, p * (len(known) - rank)))
        adjusted[place] = floor
    return adjusted
