"""A whole curve from a few key steps: interpolation, ends, clamping."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchard_core import ValuePoint
from orchard_core.datasets.credit.curve import Interpolation, full_curve

shares = st.floats(0.0, 1.0)


def at(**values: float) -> list[ValuePoint]:
    """`at(t3=0.5)`: an estimate of 0.5 at turn 3."""
    return [ValuePoint(turn=int(name[1:]), value=value) for name, value in values.items()]


def values(points: tuple[ValuePoint, ...]) -> list[float]:
    return [round(point.value, 6) for point in points]


def test_a_rise_is_spread_evenly_over_the_turns_between_two_key_steps() -> None:
    assert values(full_curve(at(t0=0.1, t4=0.5), 4)) == [0.1, 0.2, 0.3, 0.4, 0.5]


def test_with_step_the_value_stays_until_the_next_key_step() -> None:
    curve = full_curve(at(t0=0.1, t4=0.5), 5, interpolation=Interpolation.STEP)
    assert values(curve) == [0.1, 0.1, 0.1, 0.1, 0.5, 0.5]


def test_no_rise_is_made_up_before_the_first_key_step() -> None:
    assert values(full_curve(at(t2=0.6, t3=0.7), 3)) == [0.6, 0.6, 0.6, 0.7]


def test_without_a_pinned_end_the_last_estimate_is_kept_to_the_end() -> None:
    assert values(full_curve(at(t0=0.2, t1=0.4), 3)) == [0.2, 0.4, 0.4, 0.4]


def test_a_pinned_end_replaces_what_was_estimated_there() -> None:
    curve = full_curve(at(t0=0.5, t2=0.9), 2, end=0.0)
    assert values(curve) == [0.5, 0.25, 0.0]
    assert not curve[2].estimated


def test_points_that_were_put_in_say_so_and_estimates_keep_what_was_said_of_them() -> None:
    said = ValuePoint(turn=1, value=0.5, reason="the tests pass now", samples=4)
    curve = full_curve([said], 2)
    assert curve[1] == said
    assert [point.estimated for point in curve] == [False, True, False]


def test_values_outside_a_probability_are_clamped() -> None:
    assert values(full_curve(at(t0=-0.5, t1=1.5), 1)) == [0.0, 1.0]


def test_a_rollout_without_answers_has_one_value() -> None:
    assert values(full_curve(at(t0=0.3), 0)) == [0.3]


@pytest.mark.parametrize(
    "points", [[], at(t5=0.1), [*at(t1=0.1), *at(t1=0.2)], [ValuePoint(turn=-1, value=0.0)]]
)
def test_what_is_no_list_of_key_steps_is_refused(points: list[ValuePoint]) -> None:
    with pytest.raises(ValueError, match="no key steps"):
        full_curve(points, 4)


def test_a_value_that_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="no number"):
        full_curve(at(t0=math.nan), 1)


@given(st.dictionaries(st.integers(0, 30), shares, min_size=1), st.sampled_from(Interpolation))
def test_every_curve_goes_through_its_key_steps_and_stays_between_its_neighbours(
    known: dict[int, float], interpolation: Interpolation
) -> None:
    points = [ValuePoint(turn=turn, value=value) for turn, value in known.items()]
    curve = full_curve(points, 30, interpolation=interpolation)
    assert [point.turn for point in curve] == list(range(31))
    assert {point.turn: point.value for point in curve if point.estimated} == known
    low, high = min(known.values()), max(known.values())
    assert all(low - 1e-12 <= point.value <= high + 1e-12 for point in curve)
