"""Figures that mean what they say."""

from __future__ import annotations

import random
from itertools import combinations
from math import comb
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchard_core.evals.statistics import estimate, pass_at_k, pass_hat_k, student_quantile


@given(st.integers(1, 7).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_pass_at_k_and_pass_hat_k_are_shares_of_all_choices_of_k(case: tuple[int, int, int]) -> None:
    n, c, k = case
    draws = list(combinations([True] * c + [False] * (n - c), k))
    assert pass_at_k(n, c, k) == pytest.approx(fmean(any(draw) for draw in draws))
    assert pass_hat_k(n, c, k) == pytest.approx(fmean(all(draw) for draw in draws))


def test_with_fewer_attempts_than_k_the_figure_does_not_exist() -> None:
    assert pass_at_k(3, 3, 4) is None
    assert pass_hat_k(3, 3, 4) is None
    assert pass_at_k(0, 0, 1) is None


def test_many_attempts_do_not_overflow() -> None:
    value = pass_at_k(5000, 1, 100)
    assert value == pytest.approx(1 - comb(4999, 100) / comb(5000, 100))
    assert value == pytest.approx(0.02)


@pytest.mark.parametrize(
    ("freedom", "expected"),
    [
        (1, 12.7062),
        (2, 4.3027),
        (3, 3.1824),
        (4, 2.7764),
        (5, 2.5706),
        (10, 2.2281),
        (30, 2.0423),
        (1000, 1.9623),
    ],
)
def test_students_quantiles_are_those_of_the_tables(freedom: int, expected: float) -> None:
    assert student_quantile(0.975, freedom) == pytest.approx(expected, abs=0.01)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=40))
def test_an_interval_holds_its_value_and_stays_within_bounds(values: list[float]) -> None:
    found = estimate(values)
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    assert 0.0 <= found.low <= found.value <= found.high <= 1.0


def test_one_task_says_nothing_about_others() -> None:
    found = estimate([0.75])
    assert found is not None
    assert (found.value, found.low, found.high) == (0.75, None, None)
    assert estimate([]) is None


def test_a_perfect_run_does_not_claim_certainty() -> None:
    found = estimate([1.0] * 20)
    assert found is not None
    assert found.high == 1.0
    assert found.low is not None
    assert 0.7 < found.low < 0.95


def test_attempts_at_one_task_do_not_narrow_the_interval() -> None:
    once = [1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0]
    assert estimate(once) == estimate([fmean([value] * 50) for value in once])


def _coverage(interval_of_tasks: bool) -> float:
    """Share of intervals that hold the truth, 0.5, when tasks are solved always or never."""
    draw, hits, rounds = random.Random(0), 0, 400
    for _ in range(rounds):
        tasks = [float(draw.random() < 0.5) for _ in range(20)]
        values = tasks if interval_of_tasks else [value for value in tasks for _ in range(8)]
        found = estimate(values)
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= 0.5 <= found.high
    return hits / rounds


def test_clustered_intervals_hold_the_truth_as_often_as_they_say() -> None:
    assert 0.93 <= _coverage(interval_of_tasks=True) <= 0.99
    assert _coverage(interval_of_tasks=False) < 0.7
