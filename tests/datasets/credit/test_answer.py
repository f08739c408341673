"""A judge's answer is a JSON array of key steps, or it is nothing: no value is guessed from other text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchard_core.datasets.credit.judge.answer import REASON_CHARS, AnswerFault, key_steps

GOOD = '[{"turn": 0, "value": 0.5, "reason": "a"}, {"turn": 3, "value": 1, "reason": ""}]'


def told(text: str, turns: int = 4) -> list[tuple[int, float, str]]:
    return [(step.turn, step.value, step.reason) for step in key_steps(text, turns)]


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"\n {GOOD}\n",
        f"```json\n{GOOD}\n```",
        f"```\n{GOOD}```",
        f"<think>[1] is wrong</think>\n{GOOD}",
    ],
)
def test_an_array_is_read_bare_fenced_or_after_a_thought(text: str) -> None:
    assert told(text) == [(0, 0.5, "a"), (3, 1.0, "")]


def test_steps_come_in_order_of_turns() -> None:
    assert told('[{"turn": 2, "value": 0, "reason": ""}, {"turn": 1, "value": 0.25, "reason": ""}]') == [
        (1, 0.25, ""),
        (2, 0.0, ""),
    ]


def test_a_long_reason_is_cut() -> None:
    text = json.dumps([{"turn": 0, "value": 0, "reason": "x" * 100_000}])
    assert len(told(text)[0][2]) < REASON_CHARS + 100


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "empty"),
        ("I cannot help with that.", "not JSON"),
        (f"Here it is: {GOOD}", "not JSON"),
        (f"{GOOD}\nI hope this helps.", "not JSON"),
        (f"{GOOD}{GOOD}", "not JSON"),
        ('{"turn": 0, "value": 0.5, "reason": ""}', "not a JSON array"),
        ("[]", "no key step"),
        ("[0.5]", "not an object"),
        ('[{"turn": 0, "value": 0.5}]', "exactly"),
        ('[{"turn": 0, "value": 0.5, "reason": "", "note": ""}]', "exactly"),
        ('[{"turn": 0, "turn": 1, "value": 0.5, "reason": ""}]', "twice"),
        ('[{"turn": 5, "value": 0.5, "reason": ""}]', "turn 5 is no integer from 0 to 4"),
        ('[{"turn": -1, "value": 0.5, "reason": ""}]', "turn -1"),
        ('[{"turn": 1.0, "value": 0.5, "reason": ""}]', "turn 1.0"),
        ('[{"turn": "1", "value": 0.5, "reason": ""}]', "turn '1'"),
        ('[{"turn": true, "value": 0.5, "reason": ""}]', "turn True"),
        ('[{"turn": 0, "value": 1.01, "reason": ""}]', "1.01, is not from 0 to 1"),
        ('[{"turn": 0, "value": -0.1, "reason": ""}]', "not from 0 to 1"),
        ('[{"turn": 0, "value": 60, "reason": ""}]', "not from 0 to 1"),
        ('[{"turn": 0, "value": 1e999, "reason": ""}]', "not from 0 to 1"),
        ('[{"turn": 0, "value": NaN, "reason": ""}]', "NaN is no number"),
        ('[{"turn": 0, "value": "0.5", "reason": ""}]', "no number"),
        ('[{"turn": 0, "value": null, "reason": ""}]', "no number"),
        ('[{"turn": 0, "value": 0.5, "reason": 3}]', "no text"),
        (
            '[{"turn": 1, "value": 0.5, "reason": ""}, {"turn": 1, "value": 0.6, "reason": ""}]',
            "more than once",
        ),
        ("[" * 100_000, "not JSON"),
        ('[{"turn": ' + "1" * 5000 + ', "value": 0, "reason": ""}]', "not JSON"),
        (" " * 1_000_001, "characters long"),
    ],
)
def test_anything_else_is_a_fault_that_says_what_is_wrong(text: str, what: str) -> None:
    with pytest.raises(AnswerFault, match=what):
        key_steps(text, 4)


@given(st.text())
def test_no_text_does_anything_but_give_steps_or_a_fault(text: str) -> None:
    try:
        steps = key_steps(text, 4)
    except AnswerFault:
        return
    assert all(0 <= step.turn <= 4 and 0 <= step.value <= 1 for step in steps)
