"""Confidence intervals for the mean of a few rewards between 0 and 1."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from enum import StrEnum
from statistics import NormalDist, fmean, variance

Interval = tuple[float, float]
"""Lower and upper end, within [0, 1]."""


class IntervalMethod(StrEnum):
    """How an interval is made."""

    WILSON = "wilson"
    """Wilson's score interval (1927), which Brown, Cai and DasGupta (2001) advise for few samples. Its rate
    is the stated one on average over the true values, and below it at some. For rewards between 0 and 1 it
    is wide enough too: of all such with one mean, those that are 0 or 1 vary most."""
    EXACT = "exact"
    """Clopper and Pearson (1934): the stated rate or more at every true value, for rewards that are 0 or 1;
    for others, Wilson's."""
    BERNSTEIN = "bernstein"
    """The empirical Bernstein bound of Maurer and Pontil (2009, theorem 4, on both sides): the stated rate or
    more for any rewards between 0 and 1, and useless below some dozens of samples."""


def interval(rewards: Sequence[float], *, method: IntervalMethod, level: float) -> Interval:
    """Holds the mean of the distribution at about the rate `level`; [0, 1] without samples."""
    if not rewards:
        return 0.0, 1.0
    low, high = _METHODS[method](rewards, 1.0 - level)
    return max(0.0, low), min(1.0, high)


def lower_difference(before: tuple[float, Interval], after: tuple[float, Interval]) -> float:
    """The lower end of the interval of (after - before), from (mean, interval) of each.

    Newcombe's hybrid score interval for two independent proportions (1998, method 10), which squares and adds
    the distances of the ends.
    """
    (low_mean, low_interval), (high_mean, high_interval) = before, after
    return high_mean - low_mean - math.hypot(high_mean - high_interval[0], low_interval[1] - low_mean)


def surely_moves(one: tuple[float, Interval], other: tuple[float, Interval]) -> bool:
    """Whether the interval of the difference leaves 0 out."""
    return lower_difference(one, other) > 0.0 or lower_difference(other, one) > 0.0


def _wilson(rewards: Sequence[float], alpha: float) -> Interval:
    n, mean, z = len(rewards), fmean(rewards), NormalDist().inv_cdf(1.0 - alpha / 2.0)
    centre = (mean + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(mean * (1 - mean) / n + z * z / (4 * n * n))
    # Rounding must not push an end over a mean that is 0 or 1.
    return min(centre - half, mean), max(centre + half, mean)


def _exact(rewards: Sequence[float], alpha: float) -> Interval:
    if not all(reward in (0.0, 1.0) for reward in rewards):
        return _wilson(rewards, alpha)
    n, passed = len(rewards), round(sum(rewards))
    low = 0.0 if passed == 0 else _solved(lambda p: _at_least(passed, n, p) - alpha / 2)
    high = 1.0 if passed == n else _solved(lambda p: alpha / 2 - _at_most(passed, n, p))
    return low, high


def _bernstein(rewards: Sequence[float], alpha: float) -> Interval:
    n, mean = len(rewards), fmean(rewards)
    if n < 2:
        return 0.0, 1.0
    log = math.log(4.0 / alpha)
    half = math.sqrt(2.0 * variance(rewards) * log / n) + 7.0 * log / (3.0 * (n - 1))
    return mean - half, mean + half


def _at_most(passed: int, n: int, p: float) -> float:
    return math.fsum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(passed + 1))


def _at_least(passed: int, n: int, p: float) -> float:
    return math.fsum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(passed, n + 1))


def _solved(rising: Callable[[float], float]) -> float:
    """Where a rising function of p is 0."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if rising(middle) > 0 else (middle, high)
    return (low + high) / 2


_METHODS: dict[IntervalMethod, Callable[[Sequence[float], float], Interval]] = {
    IntervalMethod.WILSON: _wilson,
    IntervalMethod.EXACT: _exact,
    IntervalMethod.BERNSTEIN: _bernstein,
}
