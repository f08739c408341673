"""Estimates over tasks, with intervals that know attempts at one task are not independent.

pass@k  = 1 - C(n-c, k) / C(n, k): the chance that at least one of k attempts passes (Chen et al. 2021,
          "Evaluating Large Language Models Trained on Code", equation 1).
pass^k  = C(c, k) / C(n, k): the chance that all of k attempts pass (Yao et al. 2024, "tau-bench", section 3).
Both are the unbiased estimates from n attempts with c passes, and do not exist when n < k.

Intervals: each task is a cluster. The variance of the mean is the sample variance of the per-task values
over the number of tasks (the cluster-robust variance of Liang and Zeger 1986 for clusters of equal weight).
It gives an effective sample size, mean * (1 - mean) / variance, and that the Wilson score interval (Wilson
1927) with Student's t on (tasks - 1) degrees of freedom; so an interval stays within 0 and 1, and a run in
which every task passed does not claim certainty: its effective size is then the number of tasks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist, fmean, variance

from orchard_core.types.base import Record

METHOD = "95% Wilson score intervals on the effective sample size of the variance clustered by task"
_LEVEL = 0.975


class Estimate(Record):
    """A mean over tasks of values between 0 and 1."""

    value: float
    """The mean of the per-task values."""
    low: float | None
    """Lower end of the 95% interval; None with fewer than two tasks, from which nothing can be told."""
    high: float | None
    """Upper end, likewise."""
    tasks: int
    """Tasks it is from."""


def pass_at_k(n: int, c: int, k: int) -> float | None:
    """Chance that at least one of k attempts passes; None when n < k."""
    return None if n < k else 1.0 - math.comb(n - c, k) / math.comb(n, k)


def pass_hat_k(n: int, c: int, k: int) -> float | None:
    """Chance that all of k attempts pass; None when n < k."""
    return None if n < k else math.comb(c, k) / math.comb(n, k)


def estimate(values: Sequence[float]) -> Estimate | None:
    """The mean of one value a task, each between 0 and 1, with its interval; None without any."""
    count = len(values)
    if count == 0:
        return None
    mean = fmean(values)
    if count == 1:
        return Estimate(value=mean, low=None, high=None, tasks=1)
    spread = variance(values) / count
    size = mean * (1.0 - mean) / spread if spread > 0 else float(count)
    low, high = _wilson(mean, size, student_quantile(_LEVEL, count - 1))
    return Estimate(value=mean, low=low, high=high, tasks=count)


def _wilson(mean: float, size: float, z: float) -> tuple[float, float]:
    shrink = 1.0 + z * z / size
    centre = (mean + z * z / (2.0 * size)) / shrink
    half = z * math.sqrt(max(0.0, mean * (1.0 - mean)) / size + z * z / (4.0 * size * size)) / shrink
    # Rounding must not push an end past the value itself.
    return max(0.0, min(mean, centre - half)), min(1.0, max(mean, centre + half))


def student_quantile(p: float, freedom: int) -> float:
    """Quantile of Student's t for p > 0.5: exact for 1 and 2 degrees of freedom, else the expansion around
    the normal quantile of Abramowitz and Stegun 26.7.5 (error below 0.01 from 3 on)."""
    if freedom == 1:
        return math.tan(math.pi * (p - 0.5))
    if freedom == 2:
        return (2.0 * p - 1.0) * math.sqrt(2.0 / (4.0 * p * (1.0 - p)))
    z = NormalDist().inv_cdf(p)
    n = float(freedom)
    g1 = (z**3 + z) / 4.0
    g2 = (5 * z**5 + 16 * z**3 + 3 * z) / 96.0
    g3 = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384.0
    g4 = (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160.0
    return z + g1 / n + g2 / n**2 + g3 / n**3 + g4 / n**4
