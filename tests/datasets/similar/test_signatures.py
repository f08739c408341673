"""Texts become words, words become 128 bytes, and of two of those the resemblance is estimated."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchard_core.datasets.similar.bands import band_plan
from orchard_core.datasets.similar.minhash import near_resemblance, near_signature, of_hashes
from orchard_core.datasets.similar.words import LIMIT, normal, runs, split
from orchard_core.errors import ConfigError

TEXT = "Add up the amounts of all orders whose state is paid, by region, and write totals.csv."


def prose(random: Random, words: int) -> list[str]:
    return [
        f"{random.choice('bcdfgklmnprst')}{random.choice('aeiou')}{random.randrange(500)}"
        for _ in range(words)
    ]


def alike(random: Random, words: int, share: float) -> tuple[str, str]:
    """Two texts of which about `share` of the shingles of both together are common."""
    kept = round(words * 2 * share / (1 + share))
    one = prose(random, words)
    return " ".join(one), " ".join([*one[:kept], *prose(random, words - kept)])


def test_marks_case_and_blanks_do_not_count() -> None:
    assert normal("Write  TOTALS.csv,\nthen — stop!") == "write totals csv then stop"


def test_forms_of_a_letter_are_one() -> None:
    assert normal("ﬁle Stra\u00dfe \uff21") == normal("file strasse A") == "file strasse a"


def test_ideographs_are_words_each() -> None:
    assert normal("把文件重命名。") == "把 文 件 重 命 名"


def test_a_lone_surrogate_is_a_mark() -> None:
    assert normal("one\udc80two") == "one two"


@given(st.text())
def test_normalising_twice_changes_nothing_more_for_plain_letters(text: str) -> None:
    plain = "".join(letter for letter in text if letter.isascii())
    assert normal(normal(plain)) == normal(plain)


@given(st.text(max_size=200), st.integers(1, 6))
def test_a_text_has_a_run_for_each_place_one_can_begin(text: str, length: int) -> None:
    words = split(text)
    expected = max(len(words) - length + 1, 1) if len(words) else 0
    assert len(runs(words, length)) == expected


def test_equal_runs_of_words_have_equal_hashes_wherever_they_stand() -> None:
    there = runs(split("one two three four"), 2)
    here = runs(split("zero zero zero two three"), 2)
    assert here[-1] == there[1]
    assert len(set(here.tolist()) & set(there.tolist())) == 1


def test_of_a_huge_text_both_ends_are_seen() -> None:
    words = split("first " + "x " * LIMIT + "last")
    assert words.run(0, 1) == "first"
    assert words.run(len(words) - 1, len(words)) == "last"
    assert len(words.text) <= LIMIT + 1


def test_a_signature_is_the_same_on_every_day_and_machine() -> None:
    assert near_signature(TEXT).hex()[:32] == SIGNED


SIGNED = "a048e582987cc563fd2ac5630135cde6"


def test_a_signature_does_not_depend_on_the_process() -> None:
    code = f"from orchard_core import near_signature; print(near_signature({TEXT!r}).hex())"
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert said == {near_signature(TEXT).hex()}


def test_the_order_and_repeats_of_shingles_do_not_count() -> None:
    hashes = runs(split(TEXT), 3)
    assert of_hashes(hashes) == of_hashes(hashes[::-1].repeat(2))


@pytest.mark.parametrize("share", [0.5, 0.8, 0.95])
def test_the_estimate_is_right_on_average_and_seldom_far_off(share: float) -> None:
    random = Random(7)
    found = []
    for _ in range(25):
        one, other = alike(random, 6000, share)
        found.append(near_resemblance(near_signature(one), near_signature(other)))
    assert statistics.mean(found) == pytest.approx(share, abs=0.03)
    assert max(abs(each - share) for each in found) < 0.16


def test_texts_of_nothing_in_common_resemble_nothing() -> None:
    random = Random(1)
    one, other = " ".join(prose(random, 5000)), " ".join(prose(Random(2), 5000))
    assert near_resemblance(near_signature(one), near_signature(other)) < 0.05


def test_what_has_no_words_resembles_nothing_not_even_itself() -> None:
    assert near_signature("...") == b""
    assert near_resemblance(near_signature(""), near_signature("")) == 0.0


@pytest.mark.parametrize("threshold", [0.5, 0.7, 0.8, 0.9, 0.99, 1.0])
def test_bands_find_a_pair_at_the_threshold_and_pass_over_one_far_below(threshold: float) -> None:
    plan = band_plan(threshold)
    assert plan.chance(threshold) >= 0.95
    assert plan.chance(threshold / 3) < 0.3
    assert len(list(plan.keys(bytes(range(128))))) == plan.bands


@pytest.mark.parametrize("threshold", [0.0, -1.0, 1.01, float("nan")])
def test_a_threshold_that_is_none_is_refused(threshold: float) -> None:
    with pytest.raises(ConfigError, match="resemblance"):
        band_plan(threshold)
