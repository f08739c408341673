"""Differences and their p-values agree with hand-computed values, and hold what they promise."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchard_core.evals import paired
from orchard_core.evals.fisher import fisher_p
from orchard_core.evals.paired import holm, mean_difference, sign_flip_p

Rates = st.lists(st.fractions(min_value=-1, max_value=1, max_denominator=6), min_size=1, max_size=9)


def enumerated(values: list[Fraction]) -> float:
    """The definition: every sign pattern."""
    seen = abs(sum(values, Fraction()))
    sums = [
        sum((sign * value for sign, value in zip(signs, values, strict=True)), Fraction())
        for signs in product((1, -1), repeat=len(values))
    ]
    return sum(abs(total) >= seen for total in sums) / len(sums)


@given(Rates)
def test_the_exact_p_value_is_that_of_every_sign_pattern(values: list[Fraction]) -> None:
    assert sign_flip_p(values) == pytest.approx(enumerated(values), abs=1e-12)


def test_six_tasks_all_won_have_two_patterns_of_64() -> None:
    assert sign_flip_p([Fraction(1)] * 6) == 2 / 64


def test_tasks_without_a_difference_say_nothing_either_way() -> None:
    assert sign_flip_p([Fraction(1)] * 6 + [Fraction(0)] * 50) == 2 / 64
    assert sign_flip_p([Fraction(0)] * 5) == 1.0
    assert sign_flip_p([]) is None


def test_the_drawn_p_value_is_near_the_exact_one_and_the_same_each_time() -> None:
    sizes, seen = [1] * 30 + [2] * 10, 18
    exact = paired._exact(sizes, seen)
    drawn = paired._drawn(sizes, seen, seed=1)
    assert drawn == paired._drawn(sizes, seen, seed=1)
    spread = (exact * (1 - exact) / paired.DRAWS) ** 0.5
    assert abs(drawn - exact) < 4 * spread


def test_thousands_of_tasks_are_drawn_instead_of_counted() -> None:
    draw = random.Random(3)
    values = [Fraction(draw.choice((-1, 1)), 4) for _ in range(3000)]
    p = sign_flip_p(values)
    assert p is not None
    assert 0 < p <= 1


def test_without_a_difference_the_test_cries_wolf_at_most_as_often_as_it_says() -> None:
    draw = random.Random(7)
    trials, false = 400, 0
    for _ in range(trials):
        rates = [draw.random() for _ in range(20)]
        values = [attempts(draw, rate) - attempts(draw, rate) for rate in rates]
        p = sign_flip_p(values)
        assert p is not None
        false += p <= 0.05
    # Binomial(400, 0.05) exceeds 33 in less than one case of 1,000.
    assert false <= 33


def attempts(draw: random.Random, rate: float, count: int = 4) -> Fraction:
    return Fraction(sum(draw.random() < rate for _ in range(count)), count)


@pytest.mark.parametrize(
    ("tasks", "gain", "floor"), [(10, 0.0, 0.93), (10, 0.3, 0.93), (40, 0.0, 0.93), (40, 0.2, 0.93)]
)
def test_the_interval_holds_the_true_difference_as_often_as_it_says(
    tasks: int, gain: float, floor: float
) -> None:
    draw = random.Random(11)
    trials, held = 500, 0
    for _ in range(trials):
        rates = [draw.uniform(0.0, 1.0 - gain) for _ in range(tasks)]
        found = mean_difference([float(attempts(draw, rate + gain) - attempts(draw, rate)) for rate in rates])
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        held += found.low <= gain <= found.high
    assert held / trials >= floor


def test_an_interval_of_equal_differences_claims_no_certainty() -> None:
    found = mean_difference([0.0] * 20)
    assert found is not None
    # By hand: 22 values, sum 0, squares 1; t(19) = 2.093: half = 2.093 * sqrt(1/22/22).
    assert found.high == pytest.approx(2.093 / 22, abs=1e-4)
    assert found.low == pytest.approx(-2.093 / 22, abs=1e-4)


def test_the_mean_difference_by_hand() -> None:
    # n=4: -0.5, 0.5, 1, 1 -> mean 0.5; centre 2/6; spread (2.5 + 1)/6 - 1/9; t(3) = 3.182.
    found = mean_difference([-0.5, 0.5, 1.0, 1.0])
    assert found is not None
    half = 3.182 * ((3.5 / 6 - 1 / 9) / 6) ** 0.5
    assert found.value == 0.5
    assert found.low == pytest.approx(2 / 6 - half, abs=2e-3)
    assert found.high == 1.0  # 1.226 is no difference of rates


def test_one_task_gives_no_interval_and_none_no_value() -> None:
    one = mean_difference([0.5])
    assert one is not None
    assert (one.value, one.low, one.high) == (0.5, None, None)
    assert mean_difference([]) is None


def test_holm_by_hand() -> None:
    # Sorted 0.01, 0.02, 0.03, 0.04 times 4, 3, 2, 1, never falling.
    assert holm([0.04, 0.01, None, 0.03, 0.02]) == pytest.approx([0.06, 0.04, None, 0.06, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


@pytest.mark.parametrize(
    ("table", "p"),
    [
        ((3, 4, 1, 4), 34 / 70),  # Fisher's tea
        ((4, 4, 0, 4), 2 / 70),
        ((2, 4, 2, 4), 1.0),
        ((0, 1, 1, 1), 1.0),
        ((8, 10, 1, 6), 0.0350),  # in many textbooks
    ],
)
def test_fishers_exact_test_by_hand(table: tuple[int, int, int, int], p: float) -> None:
    assert fisher_p(*table) == pytest.approx(p, abs=1e-4)
