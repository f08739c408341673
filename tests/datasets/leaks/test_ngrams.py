"""Containment by runs of words, beside the plain way to count it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchard_core.datasets.leaks.ngrams import RunIndex
from orchard_core.datasets.leaks.said import said
from orchard_core.datasets.similar.words import split

WORDS = st.lists(st.sampled_from(list("abcdef")), min_size=0, max_size=14)


def plain_shares(known: list[list[str]], asked: list[str], length: int, common: int) -> dict[int, float]:
    """As the docstrings define it, run by run."""

    def runs_of(text: list[str]) -> list[tuple[str, ...]]:
        return [tuple(text[start : start + length]) for start in range(len(text) - length + 1)]

    having = {run: sum(run in runs_of(text) for text in known) for text in known for run in runs_of(text)}
    shares = {}
    for place, text in enumerate(known):
        own = [start for start, run in enumerate(runs_of(text)) if having[run] <= common]
        covered = {start + step for start in own for step in range(length)}
        hit = {n + step for n in own if runs_of(text)[n] in runs_of(asked) for step in range(length)}
        if hit:
            shares[place] = len(hit) / len(covered)
    return shares


@given(st.lists(WORDS, min_size=1, max_size=5), WORDS, st.integers(2, 4), st.integers(1, 3))
def test_shares_are_those_of_the_plain_way(
    known: list[list[str]], asked: list[str], length: int, common: int
) -> None:
    texts = [split(" ".join(words)) for words in known]
    places = [place for place, words in enumerate(texts) if len(words) >= length]
    index = RunIndex(texts, places, length, common)
    found = {each.text: each.share for each in index.contained(split(" ".join(asked)))}
    assert found == pytest.approx(plain_shares(known, asked, length, common))


def test_the_longest_stretch_that_both_have_is_told() -> None:
    known = split("one two three x four five six seven eight")
    (found,) = RunIndex([known], [0], 3, 2).contained(split("one two three y four five six seven eight"))
    assert known.run(found.first, found.stop) == "four five six seven eight"
    assert found.share == pytest.approx(8 / 9)


def test_of_a_conversation_every_text_counts_and_no_id_role_or_image() -> None:
    messages = (
        '[{"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "image_url", '
        '"image_url": {"url": "data:image/png;base64,AAAA"}}]}, {"role": "assistant", "content": null, '
        '"tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "bash", '
        '"arguments": "{}"}}]}]'
    )
    assert said(messages).split("\n") == ["look", "bash", "{}"]
    assert said("no JSON") == "no JSON"
