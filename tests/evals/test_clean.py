"""Text from models and sandboxes cannot steer a terminal."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchard_core.evals.clean import clean, clean_line


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;owned\x07title", "title"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bP1$r0m\x1b\\dcs", "dcs"),
        ("\x9b2Jcleared", "cleared"),
        ("bell\x07 back\x08space", "bell backspace"),
        ("\x1bcreset", "reset"),
        ("right\u202eto left\u202c", "rightto left"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("tab\tand\nline", "tab\tand\nline"),
        ("lone \ud800 surrogate", "lone \ufffd surrogate"),
        ("tags\U000e0041 and\u2028 marks\ufeff", "tags and marks"),
        ("ünïcödé 漢字 🙂", "ünïcödé 漢字 🙂"),
    ],
)
def test_control_codes_are_dropped_and_words_stay(hostile: str, shown: str) -> None:
    assert clean(hostile) == shown


@given(st.text(alphabet=st.sampled_from("\x1b[]P^_\\\x07\x9b\x9c\x9d;0123mJHc \u202eab\r\n\t")))
def test_no_control_character_survives_any_mixture(text: str) -> None:
    shown = clean(text)
    assert not {char for char in shown if ord(char) < 32 or 127 <= ord(char) < 160} - {"\n", "\t"}
    assert "\u202e" not in shown


def test_a_megabyte_of_unfinished_sequences_takes_linear_time() -> None:
    def cost(size: int) -> float:
        text = ("\x1b]" * size) + ("\x1b]" + "a" * 4000) * (size // 2000)
        started = time.process_time()
        clean(text)
        return time.process_time() - started

    small, large = max(cost(25_000), 0.002), cost(250_000)
    assert large < 60 * small, "ten times the text must not take a hundred times the time"


def test_a_line_is_one_line_of_bounded_width() -> None:
    assert clean_line("two\nlines\tand a tab") == "two lines and a tab"
    assert clean_line("x" * 50, 10) == "x" * 9 + "…"
