"""Credit on rows: the mask is narrowed to what rises, and never widened."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchard_core import CreditRefused, DatasetCorrupt, SampleLabel, apply_credit
from orchard_core.datasets.credit.rules import failed_credit, resolved_credit

from .making import make_credit, make_rollout, make_row

ROW = make_row(make_rollout(turns=3))


def test_only_answers_within_rises_stay_trained() -> None:
    roles = [message["role"] for message in json.loads(ROW.messages)]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "tool", "assistant"]
    row = apply_credit(ROW, make_credit(values=(0.1, 0.4, 0.4, 0.5)))
    assert row.mask == (0, 0, 1, 0, 0, 0, 1)
    assert row.values == (0.1, 0.4, 0.4, 0.5)
    assert row.credit == "judge"


def test_a_resolved_rollout_is_trained_on_as_it_was() -> None:
    assert apply_credit(ROW, resolved_credit("one", estimator="judge", turns=3)) == ROW


def test_a_rollout_that_could_not_be_estimated_is_never_taken_whole() -> None:
    row = apply_credit(ROW, failed_credit("one", estimator="judge", turns=3, error="no answer"))
    assert (sum(row.mask), row.values, row.credit) == (0, (), "judge")


def test_further_conversations_of_an_unresolved_rollout_are_not_trained_on() -> None:
    fork = ROW.model_copy(update={"label": SampleLabel.FORK, "id": "one#1"})
    assert sum(apply_credit(fork, make_credit(values=(0.1, 0.4, 0.4, 0.5))).mask) == 0
    assert apply_credit(fork, resolved_credit("one", estimator="judge", turns=9)) == fork


@given(st.lists(st.integers(0, 1), min_size=3, max_size=3), st.lists(st.floats(0, 1), min_size=4, max_size=4))
def test_a_mask_is_only_narrowed_and_doing_it_twice_changes_nothing(
    before: list[int], values: list[float]
) -> None:
    mask = (0, 0, before[0], 0, before[1], 0, before[2])
    credit = make_credit(values=values)
    once = apply_credit(ROW.model_copy(update={"mask": mask}), credit)
    assert all(now <= then for now, then in zip(once.mask, mask, strict=True))
    assert [once.mask[place] for place in (2, 4, 6)] == [
        had & kept for had, kept in zip(before, credit.mask, strict=True)
    ]
    assert apply_credit(once, credit) == once


def test_the_credit_of_another_rollout_or_of_other_turns_is_refused() -> None:
    with pytest.raises(CreditRefused, match="rollout two was to be put on row one"):
        apply_credit(ROW, make_credit("two"))
    with pytest.raises(CreditRefused, match="has 2 turns, and its row has 3"):
        apply_credit(ROW, make_credit(values=(0.1, 0.2, 0.3)))


@pytest.mark.parametrize("messages", ["[", '{"a": 1}', "[1]", "[]", '[{"role": "assistant"}]'])
def test_a_row_whose_messages_are_broken_is_named(messages: str) -> None:
    with pytest.raises(DatasetCorrupt, match="one") as caught:
        apply_credit(ROW.model_copy(update={"messages": messages}), make_credit())
    assert caught.value.field == "messages"
