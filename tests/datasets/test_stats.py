"""What rows add up to, the same from rows and from a dataset's columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchard_core import AnswerSpan, DatasetRow, Outcome, RecordedTokens, SampleLabel
from orchard_core.datasets.reading import find_source
from orchard_core.datasets.stats import DatasetStats, build_stats
from orchard_core.datasets.stats_read import measure, measured

from .making import make_row, make_tokens
from .store.forging import write


def stats(rows: list[DatasetRow], *by: tuple[str, ...], threshold: float = 1.0) -> DatasetStats:
    return build_stats(map(measure, rows), by=by or (("harness",),), threshold=threshold)


def test_rows_tasks_turns_and_tokens_are_counted() -> None:
    rows = [make_row(n, turns=n, token_count=100 * n, task=f"t{n % 3}") for n in range(1, 6)]
    total = stats(rows).total
    assert (total.rows, total.tasks, total.sum_turns, total.sum_tokens) == (5, 3, 15, 1500)
    assert (total.turns.p10, total.turns.p50, total.turns.p90, total.turns.max, total.turns.mean) == (
        1,
        3,
        5,
        5,
        3,
    )
    assert (total.tokens.p50, total.tokens.p99) == (300, 500)


def test_no_rows_add_up_to_nothing() -> None:
    told = stats([])
    assert (told.total.rows, told.total.turns.max, told.groups) == (0, 0.0, ((),))


def test_quantiles_have_three_digits_and_never_pass_the_largest() -> None:
    total = stats([make_row(n, token_count=count) for n, count in enumerate((12_344, 12_346, 98_765))]).total
    assert (total.tokens.p50, total.tokens.p99, total.tokens.max) == (12_300, 98_765, 98_765)


def test_resolved_are_rollouts_by_their_main_conversation_and_a_threshold() -> None:
    rows = [
        make_row(0, reward=1.0),
        make_row(1, reward=1.0, label=SampleLabel.FORK),
        make_row(2, reward=0.5),
        make_row(3, reward=None),
    ]
    told = stats(rows).total
    assert (told.rows, told.rollouts, told.scored, told.resolved) == (4, 3, 2, 1)
    assert stats(rows, threshold=0.5).total.resolved == 2


def test_groups_are_told_largest_first_and_several_names_cross() -> None:
    rows = [
        make_row(n, harness="react" if n else "miniswe", split="train" if n < 3 else "test") for n in range(4)
    ]
    told = stats(rows, ("harness",), ("harness", "split"))
    assert [(dict(group.by), group.rows) for group in told.groups[0]] == [
        ({"harness": "react"}, 3),
        ({"harness": "miniswe"}, 1),
    ]
    assert [(tuple(group.by.values()), group.rows) for group in told.groups[1]] == [
        (("react", "train"), 2),
        (("miniswe", "train"), 1),
        (("react", "test"), 1),
    ]


def test_an_unknown_outcome_is_a_group_without_a_name() -> None:
    rows = [make_row(0, outcome=None), make_row(1, outcome=Outcome.TIMED_OUT)]
    assert [dict(group.by) for group in stats(rows, ("outcome",)).groups[0]] == [
        {"outcome": ""},
        {"outcome": "timed_out"},
    ]


def test_what_credit_leaves_out_is_not_trained_neither_as_turns_nor_as_tokens() -> None:
    rows = [
        make_row(0, tokens=make_tokens()),
        make_row(1, tokens=make_tokens(), mask=(0, 0), credit="judge"),
    ]
    total = stats(rows).total
    assert (total.sum_turns, total.trained_turns) == (2, 1)
    assert (total.recorded, total.trained_tokens) == (8, 2)
    assert total.credit == {"": 1, "judge": 1}


@st.composite
def rows(draw: st.DrawFn, number: int) -> DatasetRow:
    size, count = draw(st.integers(0, 8)), draw(st.integers(0, 4))
    ends = sorted(draw(st.lists(st.integers(0, size), min_size=4, max_size=4)))
    answers = (
        AnswerSpan(message=draw(st.integers(-1, 5)), start=ends[0], stop=ends[1]),
        AnswerSpan(message=draw(st.integers(-1, 5)), start=ends[2], stop=ends[3]),
    )
    held = RecordedTokens(
        token_ids=tuple(range(size)),
        mask=draw(st.tuples(*[st.integers(0, 1)] * size)),
        logprobs=(0.0,) * size,
        answers=answers,
    )
    tokens: Any = draw(st.none() | st.just(held))
    return make_row(number, tokens=tokens, mask=draw(st.tuples(*[st.integers(0, 1)] * count)))


@settings(max_examples=40, deadline=None)
@given(data=st.data(), count=st.integers(0, 7))
def test_a_datasets_columns_tell_the_same_as_its_rows(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, count: int
) -> None:
    made = [data.draw(rows(number)) for number in range(count)]
    root = write(tmp_path_factory.mktemp("stats") / "out", made)
    assert list(measured(find_source(root))) == [measure(row) for row in made]


def test_a_path_of_any_kind_can_be_measured(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(
        '{"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "x"}]}\n'
    )
    assert build_stats(measured(find_source(path))).total.sum_turns == 1
