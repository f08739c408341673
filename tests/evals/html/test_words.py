"""Figures are written so that nobody reads more into them than they say."""

from __future__ import annotations

import pytest

from orchard_core.evals.html import words
from orchard_core.evals.html.view import show_command


@pytest.mark.parametrize(
    ("value", "written"),
    [(0.0, "0%"), (0.0001, "0.1%"), (0.5, "50.0%"), (2 / 3, "66.7%"), (0.9999, "99.9%"), (1.0, "100%")],
)
def test_only_all_and_none_are_written_as_such(value: float, written: str) -> None:
    assert words.percent(value) == written


def test_an_unknown_cost_is_never_zero() -> None:
    assert [words.dollars(usd) for usd in (None, 0.0, 0.0123, 1234.5)] == [
        "unknown",
        "$0.00",
        "$0.0123",
        "$1,234.50",
    ]


def test_differences_bear_their_sign() -> None:
    assert [words.points(value) for value in (0.125, -0.03, 0.0, 0.0001)] == [
        "+12.5",
        "\N{MINUS SIGN}3.0",
        "0",
        "0",
    ]


def test_a_command_is_quoted_for_a_shell() -> None:
    assert show_command("runs/a b", "0a1b") == "orchard show &#39;runs/a b&#39; 0a1b"


@pytest.mark.parametrize(
    ("run", "rollout"), [("runs/\u202ex", "a"), ("runs/x\n", "a"), ("runs/x", "--debug"), ("x" * 600, "a")]
)
def test_a_command_that_nobody_could_type_safely_is_not_given(run: str, rollout: str) -> None:
    assert show_command(run, rollout) is None
