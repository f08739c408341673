"""How many rows each group gives: properties of the arithmetic alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchard_core.datasets.mix.quotas import Marginal, fitted, quotas, rounded
from orchard_core.datasets.mix.recipe import MixExhausted
from orchard_core.errors import ConfigError

COUNTS = st.lists(st.integers(1, 500), min_size=1, max_size=6)
SHARE = st.floats(0.05, 1)


def taken(
    counts: list[int], weights: list[float], exhausted: MixExhausted, total: int | None = None
) -> list[int]:
    """Quotas of sources that are one group each."""
    shares = [weight / sum(weights) for weight in weights]
    return quotas(counts, shares, range(len(counts)), total=total, exhausted=exhausted, copies=3)


@st.composite
def weighted(draw: st.DrawFn) -> tuple[list[int], list[float]]:
    counts = draw(COUNTS)
    return counts, draw(st.lists(SHARE, min_size=len(counts), max_size=len(counts)))


@given(st.lists(st.floats(0, 10), min_size=1, max_size=9), st.integers(0, 10_000))
def test_rounding_keeps_the_total_and_is_less_than_one_off(shares: list[float], total: int) -> None:
    found = rounded(shares, total)
    if sum(shares) <= 0:
        assert found == [0] * len(shares)
        return
    assert sum(found) == total
    for share, number in zip(shares, found, strict=True):
        assert abs(number - total * share / sum(shares)) < 1 + 1e-6


@given(weighted())
def test_at_the_first_exhausted_source_shares_hold_and_no_row_stands_twice(
    given: tuple[list[int], list[float]],
) -> None:
    counts, weights = given
    found = taken(counts, weights, MixExhausted.FIRST)
    for number, count, weight in zip(found, counts, weights, strict=True):
        assert number <= count
        assert abs(number - sum(found) * weight / sum(weights)) < 1 + 1e-6
    assert any(number >= count - 1 for number, count in zip(found, counts, strict=True)), "one is used up"


@given(weighted())
def test_repeating_uses_every_row_or_stops_at_the_bound_of_repeats(
    given: tuple[list[int], list[float]],
) -> None:
    counts, weights = given
    found = taken(counts, weights, MixExhausted.ALL)
    assert all(number <= 3 * count for number, count in zip(found, counts, strict=True))
    every = all(number >= count for number, count in zip(found, counts, strict=True))
    bound = any(number >= 3 * count - 1 for number, count in zip(found, counts, strict=True))
    assert every or bound
    for number, weight in zip(found, weights, strict=True):
        assert abs(number - sum(found) * weight / sum(weights)) < 1 + 1e-6


@given(weighted(), st.none() | st.integers(1, 3_000))
def test_going_on_takes_each_row_once_until_all_are_used(
    given: tuple[list[int], list[float]], total: int | None
) -> None:
    counts, weights = given
    found = taken(counts, weights, MixExhausted.WITHOUT_REPLACEMENT, total)
    assert all(number <= count for number, count in zip(found, counts, strict=True))
    assert sum(found) == (sum(counts) if total is None else min(total, sum(counts)))


@given(
    st.lists(st.integers(1, 300), min_size=6, max_size=6),
    st.lists(SHARE, min_size=2, max_size=2),
    st.lists(SHARE, min_size=3, max_size=3),
)
def test_weights_and_strata_hold_at_once(
    counts: list[int], sources: list[float], outcomes: list[float]
) -> None:
    cells = [(source, outcome) for source in range(2) for outcome in range(3)]
    asked = [
        Marginal(
            field=name,
            labels=[cell[place] for cell in cells],
            shares={label: weight / sum(weights) for label, weight in enumerate(weights)},
        )
        for place, (name, weights) in enumerate((("source", sources), ("outcome", outcomes)))
    ]
    shares = fitted(counts, asked)
    assert sum(shares) == pytest.approx(1)
    for place, marginal in enumerate(asked):
        for label, share in marginal.shares.items():
            found = sum(part for part, cell in zip(shares, cells, strict=True) if cell[place] == label)
            assert found == pytest.approx(share, abs=1e-5)
    sides = [cell[0] for cell in cells]
    numbers = quotas(counts, shares, sides, total=None, exhausted=MixExhausted.FIRST, copies=1)
    assert all(number <= count for number, count in zip(numbers, counts, strict=True))
    total = sum(numbers)
    for label, share in asked[0].shares.items():
        number = sum(part for part, cell in zip(numbers, cells, strict=True) if cell[0] == label)
        assert abs(number - total * share) < 2
    for label, share in asked[1].shares.items():
        number = sum(part for part, cell in zip(numbers, cells, strict=True) if cell[1] == label)
        assert abs(number - total * share) < 2 + len(asked[0].shares)


def test_without_anything_asked_rows_are_taken_as_they_come() -> None:
    assert fitted([30, 10], []) == [0.75, 0.25]
    taken = quotas([30, 10], [0.75, 0.25], [0, 1], total=None, exhausted=MixExhausted.FIRST, copies=1)
    assert taken == [30, 10]


def test_shares_that_contradict_each_other_are_refused() -> None:
    labels = ["a", "b"]
    one = Marginal(field="source", labels=labels, shares={"a": 0.9, "b": 0.1})
    other = Marginal(field="harness", labels=labels, shares={"a": 0.1, "b": 0.9})
    with pytest.raises(ConfigError, match="source and harness at once"):
        fitted([10, 10], [one, other])


def test_a_share_of_what_is_not_there_is_refused_by_name() -> None:
    asked = Marginal(field="outcome", labels=["completed"], shares={"completed": 0.5, "truncated": 0.5})
    with pytest.raises(ConfigError, match="no row is left of outcome 'truncated'"):
        fitted([10], [asked])
