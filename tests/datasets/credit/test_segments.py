"""Rise segments and masks: cases computed by hand, and what holds for every curve."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchard_core import ConfigError, RiseSegment
from orchard_core.datasets.credit.merge import RULES, MergeRule, merge_rule
from orchard_core.datasets.credit.segments import credits_of, rise_segments, segment_mask

curves = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=40)
rules = st.builds(
    lambda name, reach: merge_rule(name if name == "none" else f"{name}:{reach}"),
    st.sampled_from(sorted(RULES)),
    st.integers(0, 5),
)


def spans(segments: tuple[RiseSegment, ...]) -> list[tuple[int, int]]:
    return [(segment.start, segment.stop) for segment in segments]


def of(*pairs: tuple[int, int]) -> tuple[RiseSegment, ...]:
    return tuple(RiseSegment(start=start, stop=stop) for start, stop in pairs)


def test_a_credit_is_the_difference_of_the_values_before_and_after_its_answer() -> None:
    assert credits_of([0.25, 0.5, 0.25]) == (0.25, -0.25)


def test_a_segment_trains_the_answers_that_made_the_value_rise() -> None:
    # c = +0.1, +0.2, 0.0, -0.3, +0.5: states 0 to 2 and 4 to 5 are rises.
    values = [0.1, 0.2, 0.4, 0.4, 0.1, 0.6]
    assert spans(rise_segments(values)) == [(0, 2), (4, 5)]
    assert segment_mask(rise_segments(values), 5) == (1, 1, 0, 0, 1)


def test_a_rise_smaller_than_epsilon_is_none() -> None:
    assert spans(rise_segments([0.0, 0.04, 0.08, 0.2])) == [(2, 3)]


@pytest.mark.parametrize("start", [0.0, 0.05, 0.1, 0.25, 0.55, 0.7, 0.9, 0.95])
def test_a_rise_of_exactly_epsilon_counts_wherever_it_begins(start: float) -> None:
    assert spans(rise_segments([start, start + 0.05])) == [(0, 1)]


def test_a_rise_of_a_half_spread_over_ten_turns_is_exactly_epsilon_at_each() -> None:
    values = [0.1 + 0.5 * turn / 10 for turn in range(11)]
    assert spans(rise_segments(values)) == [(0, 10)]


def test_a_rise_just_below_epsilon_does_not_count() -> None:
    assert spans(rise_segments([0.5, 0.5499999])) == []


def test_a_flat_a_falling_and_a_single_state_have_no_segment() -> None:
    assert spans(rise_segments([0.5, 0.5, 0.5])) == []
    assert spans(rise_segments([0.9, 0.5, 0.1])) == []
    assert spans(rise_segments([0.9])) == []


def test_gap_joins_segments_that_are_near_enough_and_keeps_the_turns_between() -> None:
    assert spans(merge_rule("gap:1")(of((0, 2), (3, 4), (6, 7)), 8)) == [(0, 4), (6, 7)]


def test_context_widens_within_the_rollout_and_joins_what_then_touches() -> None:
    assert spans(merge_rule("context:1")(of((0, 1), (3, 4), (9, 10)), 10)) == [(0, 5), (8, 10)]


def test_none_changes_nothing() -> None:
    assert spans(merge_rule("none")(of((0, 1), (2, 3)), 4)) == [(0, 1), (2, 3)]


@pytest.mark.parametrize(
    "text", ["", "gaps:1", "gap", "gap:", "gap:-1", "gap:1.5", "none:1", "gap:" + "9" * 5000]
)
def test_what_is_no_merge_rule_is_refused_with_those_there_are(text: str) -> None:
    with pytest.raises(ConfigError, match="gap:N"):
        merge_rule(text)


@given(curves, st.floats(0.01, 0.9))
def test_segments_are_maximal_disjoint_and_in_order(values: list[float], epsilon: float) -> None:
    found = rise_segments(values, epsilon=epsilon)
    rises = [credit >= epsilon - 1e-9 for credit in credits_of(values)]
    for segment in found:
        assert all(rises[segment.start : segment.stop])
        assert segment.start == 0 or not rises[segment.start - 1]
        assert segment.stop == len(rises) or not rises[segment.stop]
    assert all(before.stop < after.start for before, after in pairwise(found))
    assert list(segment_mask(found, len(rises))) == [int(rise) for rise in rises]


@given(curves, rules)
def test_merging_keeps_what_rises_and_gives_segments_in_order(values: list[float], rule: MergeRule) -> None:
    turns = len(values) - 1
    found = rise_segments(values)
    merged = rule(found, turns)
    kept = segment_mask(merged, turns)
    assert all(after >= before for before, after in zip(segment_mask(found, turns), kept, strict=True))
    assert sum(segment.stop - segment.start for segment in merged) == sum(kept)
    assert all(before.stop < after.start for before, after in pairwise(merged))
    assert all(0 <= segment.start < segment.stop <= turns for segment in merged)


@given(curves, st.sampled_from(["none", "gap:0", "gap:1", "gap:4", "context:0"]))
def test_joining_twice_is_joining_once(values: list[float], text: str) -> None:
    turns, rule = len(values) - 1, merge_rule(text)
    once = rule(rise_segments(values), turns)
    assert rule(once, turns) == once
    assert str(rule) == text
