"""Intervals hold the true value as often as they say."""

from __future__ import annotations

from math import comb

import pytest

from orchard_core.datasets.credit.branch.interval import (
    IntervalMethod,
    interval,
    lower_difference,
    surely_moves,
)

GRID = [number / 200 for number in range(201)]
"""True values."""


def of(
    passed: int, n: int, method: IntervalMethod = IntervalMethod.WILSON, level: float = 0.95
) -> list[float]:
    rewards = [1.0] * passed + [0.0] * (n - passed)
    return [round(end, 4) for end in interval(rewards, method=method, level=level)]


def test_wilsons_interval_is_the_published_one() -> None:
    """Values of Newcombe (1998), "Two-sided confidence intervals for the single proportion", table I."""
    assert of(81, 263) == [0.2553, 0.3662]
    assert of(15, 148) == [0.0624, 0.1605]
    assert of(0, 20) == [0.0, 0.1611]
    assert of(1, 29) == [0.0061, 0.1718]


def test_the_exact_interval_is_the_published_one() -> None:
    exact = IntervalMethod.EXACT
    assert of(81, 263, exact) == [0.2527, 0.3676]
    assert of(15, 148, exact) == [0.0578, 0.1617]
    assert of(0, 20, exact) == [0.0, 0.1684]
    assert of(1, 29, exact) == [0.0009, 0.1776]


def test_the_interval_of_a_difference_is_the_published_one() -> None:
    """Newcombe (1998), "Interval estimation for the difference between independent proportions", table II:
    56/70 - 48/80."""
    more, less = (
        (56 / 70, interval([1.0] * 56 + [0.0] * 14, method=IntervalMethod.WILSON, level=0.95)),
        (48 / 80, interval([1.0] * 48 + [0.0] * 32, method=IntervalMethod.WILSON, level=0.95)),
    )
    assert round(lower_difference(less, more), 4) == 0.0524
    assert round(-lower_difference(more, less), 4) == 0.3339
    assert surely_moves(less, more)
    assert surely_moves(more, less)


def coverage(n: int, p: float, method: IntervalMethod, level: float) -> float:
    """How often the interval of n rewards that are 1 with probability p holds p."""
    held = [low <= p <= high for low, high in (of_ends(passed, n, method, level) for passed in range(n + 1))]
    return sum(comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(n + 1) if held[i])


def of_ends(passed: int, n: int, method: IntervalMethod, level: float) -> tuple[float, float]:
    return interval([1.0] * passed + [0.0] * (n - passed), method=method, level=level)


@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize("n", [2, 5, 8, 20])
def test_the_exact_interval_holds_every_value_at_the_stated_rate_or_more(n: int, level: float) -> None:
    assert min(coverage(n, p, IntervalMethod.EXACT, level) for p in GRID) >= level - 1e-9


@pytest.mark.parametrize("n", [4, 8, 16])
def test_wilsons_interval_holds_values_at_the_stated_rate_on_average(n: int) -> None:
    rates = [coverage(n, p, IntervalMethod.WILSON, 0.95) for p in GRID]
    assert 0.95 <= sum(rates) / len(rates) < 0.97
    assert min(rates) > 0.8


def test_rewards_that_are_all_alike_leave_room_on_one_side() -> None:
    for method in IntervalMethod:
        assert interval([0.0] * 8, method=method, level=0.95)[0] == 0.0
        assert interval([1.0] * 8, method=method, level=0.95)[1] == 1.0


def test_partial_rewards_get_an_interval_around_their_mean() -> None:
    rewards = [0.5, 0.4, 0.6, 0.5] * 20
    for method in IntervalMethod:
        low, high = interval(rewards, method=method, level=0.95)
        assert low < 0.5 < high
    assert interval(rewards, method=IntervalMethod.EXACT, level=0.95) == interval(
        rewards, method=IntervalMethod.WILSON, level=0.95
    )


def test_nothing_measured_says_nothing() -> None:
    for method in IntervalMethod:
        assert interval([], method=method, level=0.95) == (0.0, 1.0)
    assert interval([1.0], method=IntervalMethod.BERNSTEIN, level=0.95) == (0.0, 1.0)
