"""Turns are measured where the value moves, within the budget."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pydantic import ValidationError

from orchard_core.datasets.credit.branch.design import (
    Measured,
    expected_rollouts,
    first_turns,
    most_rollouts,
    next_turns,
)
from orchard_core.datasets.credit.branch.options import BranchOptions
from orchard_core.rollout.branching.branch import Branch, BranchMode


def measured(turn: int, value: float, options: BranchOptions, *, invalid: int = 0) -> Measured:
    """A turn whose continuations pass at this share."""
    passed = round(value * (options.k - invalid))
    branches = [
        Branch(
            rollout="r",
            turn=turn,
            number=number,
            seed=number,
            mode=BranchMode.RERUN,
            reward=None if number < invalid else float(number - invalid < passed),
            invalid="no" if number < invalid else "",
        )
        for number in range(options.k)
    ]
    return Measured.of(turn, branches, options)


def played(value: Callable[[int], float], turns: int, options: BranchOptions) -> list[list[int]]:
    """The rounds of a whole measurement of a rollout that fails in the end."""
    rounds, known = [first_turns(turns, options)], dict[int, Measured]()
    while rounds[-1]:
        known |= {turn: measured(turn, value(turn), options) for turn in rounds[-1]}
        left = options.max_rollouts - options.k * len(known)
        rounds.append(next_turns(known, turns, 0.0, options, left=left))
    return rounds[:-1]


MANY = BranchOptions(k=8, max_rollouts=800)


def test_a_grid_comes_first_and_turn_0_is_always_in_it() -> None:
    assert first_turns(40, MANY) == [0, 10, 20, 30]
    assert first_turns(3, MANY) == [0, 1, 2]
    assert first_turns(1, MANY) == [0]
    assert first_turns(40, BranchOptions(k=8, max_rollouts=20)) == [0, 20]


def test_the_piece_over_which_the_value_falls_is_halved_down_to_one_answer() -> None:
    rounds = played(lambda turn: 1.0 if turn <= 13 else 0.0, 40, MANY)
    assert rounds == [[0, 10, 20, 30], [15], [12], [13], [14]]


def test_where_nothing_moves_nothing_more_is_measured() -> None:
    assert played(lambda _turn: 0.0, 40, MANY) == [[0, 10, 20, 30]]


def test_the_largest_move_is_looked_at_first_when_the_budget_is_small() -> None:
    values = {0: 0.5, 10: 1.0, 20: 0.25, 30: 0.0}
    known = {turn: measured(turn, value, MANY) for turn, value in values.items()}
    assert next_turns(known, 40, 0.0, MANY, left=8) == [15]
    assert next_turns(known, 40, 0.0, MANY, left=24) == [15, 5, 25]
    assert next_turns(known, 40, 0.0, MANY, left=7) == []


def test_a_coarser_resolution_stops_sooner() -> None:
    coarse = BranchOptions(k=8, max_rollouts=800, resolution=3)
    assert played(lambda turn: 1.0 if turn <= 13 else 0.0, 40, coarse) == [[0, 10, 20, 30], [15], [12]]


def test_a_small_move_is_halved_only_when_it_is_sure() -> None:
    few, many = BranchOptions(k=8, max_rollouts=800), BranchOptions(k=200, max_rollouts=8000)
    for options, expected in ((few, []), (many, [10])):
        known = {0: measured(0, 0.75, options), 20: measured(20, 0.6, options)}
        assert 10 in next_turns(known, 40, 0.6, options, left=1000) or expected == []
        assert [turn for turn in next_turns(known, 40, 0.6, options, left=1000) if turn == 10] == expected


def test_a_turn_with_too_many_invalid_continuations_is_passed_over_and_a_neighbour_tried() -> None:
    known = {0: measured(0, 1.0, MANY), 5: measured(5, 0.0, MANY, invalid=5)}
    assert not known[5].counts(MANY)
    assert next_turns(known, 10, 0.0, MANY, left=100) == [4]


def test_no_more_is_measured_than_the_budget_allows() -> None:
    small = BranchOptions(k=8, max_rollouts=40)
    rounds = played(lambda turn: float(turn % 20 < 10), 40, small)
    assert sum(map(len, rounds)) * small.k == 40 == most_rollouts(40, small)


def test_a_short_rollout_takes_no_more_than_all_its_turns() -> None:
    assert most_rollouts(2, MANY) == 16
    assert expected_rollouts(2, MANY) == 16
    assert expected_rollouts(40, MANY) == 8 * (4 + 4)
    assert expected_rollouts(40, BranchOptions(k=8, max_rollouts=40)) == 40


@pytest.mark.parametrize(
    "options", [{"k": 1}, {"level": 1.0}, {"max_rollouts": 7, "k": 8}, {"invalid_share": 1.0}, {"kk": 3}]
)
def test_options_that_make_no_sense_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        BranchOptions.model_validate(options)
