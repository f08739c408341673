"""The earlier near duplicate of a text, and groups of texts."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchard_core import ConfigError, NearIndex, near_signature
from orchard_core.datasets.similar.actions import action_signature, action_text
from orchard_core.datasets.similar.groups import Unions, near_links
from orchard_core.datasets.similar.index import SCANNED

from .test_signatures import alike, prose


def signed(random: Random) -> bytes:
    return near_signature(" ".join(prose(random, 300)))


def test_the_first_of_near_duplicates_is_named_and_only_it_is_held() -> None:
    one, other = alike(Random(1), 2000, 0.95)
    index: NearIndex[str] = NearIndex(0.8)
    assert index.add("first", near_signature(one)) is None
    assert index.add("second", near_signature(other)) == "first"
    assert index.add("third", near_signature(other)) == "first"
    assert len(index) == 1


def test_a_text_below_the_threshold_is_its_own() -> None:
    one, other = alike(Random(1), 2000, 0.5)
    index: NearIndex[int] = NearIndex(0.8)
    assert index.add(1, near_signature(one)) is None
    assert index.add(2, near_signature(other)) is None


def test_only_texts_of_one_scope_are_compared() -> None:
    index: NearIndex[str] = NearIndex()
    same = near_signature("the same actions in two tasks")
    assert index.add("a", same, scope="task-1") is None
    assert index.add("b", same, scope="task-2") is None
    assert index.add("c", same, scope="task-2") == "b"


def test_looking_holds_nothing() -> None:
    index: NearIndex[str] = NearIndex()
    assert index.find(near_signature("words")) is None
    index.add("a", near_signature("words"))
    assert index.find(near_signature("words")) == "a"
    assert len(index) == 1


def test_texts_without_words_are_never_duplicates() -> None:
    index: NearIndex[str] = NearIndex()
    assert index.add("a", near_signature("")) is None
    assert index.add("b", near_signature("")) is None


def test_a_scope_too_large_to_scan_still_finds_its_first_and_its_last() -> None:
    random = Random(3)
    index: NearIndex[int] = NearIndex(0.8)
    held = [signed(random) for _ in range(SCANNED + 50)]
    for number, sign in enumerate(held):
        assert index.add(number, sign) is None
    assert [index.find(held[number]) for number in (0, SCANNED, SCANNED + 49)] == [0, SCANNED, SCANNED + 49]


def test_a_large_scope_finds_nearly_all_that_a_scan_finds() -> None:
    random = Random(4)
    index: NearIndex[int] = NearIndex(0.8)
    pairs = [alike(random, 400, 0.9) for _ in range(SCANNED + 100)]
    for number, (one, _) in enumerate(pairs):
        index.add(number, near_signature(one))
    found = sum(index.find(near_signature(other)) == number for number, (_, other) in enumerate(pairs))
    assert found > 0.95 * len(pairs)


def test_a_signature_of_another_kind_is_refused() -> None:
    with pytest.raises(ConfigError, match="4 bytes"):
        NearIndex[str]().add("a", b"four")


def near_groups(texts: list[str], threshold: float) -> list[tuple[int, ...]]:
    """The places of the texts in the groups that the links make."""
    joined = Unions(len(texts))
    for one, other in near_links(texts, threshold):
        joined.join(one, other)
    return joined.groups()


def test_groups_are_linked_by_chains() -> None:
    words = prose(Random(5), 120)
    first, second, third = words[:100], words[5:105], words[10:110]
    texts = [" ".join(first), "nothing of the kind here", " ".join(third), " ".join(second)]
    assert near_groups(texts, 0.85) == [(0, 2, 3), (1,)]
    assert near_groups([texts[0], texts[2]], 0.85) == [(0,), (1,)]


@given(st.lists(st.sampled_from(["a b c d", "a b c d e", "e f g h", "", "x"]), max_size=8), st.randoms())
def test_groups_are_a_partition_that_does_not_depend_on_the_order(texts: list[str], random: Random) -> None:
    order = list(range(len(texts)))
    random.shuffle(order)
    straight = {frozenset(group) for group in near_groups(texts, 0.6)}
    shuffled = {
        frozenset(order[member] for member in group) for group in near_groups([texts[n] for n in order], 0.6)
    }
    assert straight == shuffled
    assert sorted(member for group in straight for member in group) == list(range(len(texts)))


def call(name: str, arguments: str) -> dict[str, object]:
    return {"id": "x", "type": "function", "function": {"name": name, "arguments": arguments}}


def said(thought: str, *calls: dict[str, object]) -> dict[str, object]:
    return {"role": "assistant", "content": thought, "tool_calls": list(calls)}


def test_actions_are_calls_and_not_thoughts_or_observations() -> None:
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Do it"},
        said("I look first.", call("bash", '{"command": "ls"}')),
        {"role": "tool", "content": "a b c"},
        {"role": "assistant", "content": "Done."},
    ]
    assert action_text(messages) == 'bash {"command": "ls"}\nDone.'


def test_two_rollouts_that_do_the_same_in_other_words_are_near_duplicates() -> None:
    steps = [f'{{"command": "sed -n {n}p notes.txt | tee part-{n}"}}' for n in range(12)]
    one = [said("Now the next line.", call("bash", step)) for step in steps]
    other = [said(f"Step {n}: I go on with the file.", call("bash", step)) for n, step in enumerate(steps)]
    index: NearIndex[str] = NearIndex()
    index.add("one", action_signature(one))
    assert index.add("other", action_signature(other)) == "one"


def test_actions_of_odd_messages_are_passed_over() -> None:
    odd: list[Any] = [
        "text",
        {"role": "assistant", "tool_calls": [None, {"function": 3}]},
        {"role": "assistant"},
    ]
    parts = {"role": "assistant", "content": [{"type": "text", "text": "run ls"}, {"type": "image_url"}, 4]}
    assert action_text([*odd, parts]) == "run ls"


def shingles(text: str) -> set[tuple[str, ...]]:
    words = text.split()
    return {tuple(words[start : start + 3]) for start in range(max(len(words) - 2, 1))}


def test_pairs_are_those_of_comparing_each_with_each() -> None:
    random = Random(8)
    texts = [text for _ in range(60) for text in alike(random, 60, random.uniform(0.6, 1.0))]
    near = {
        (one, other)
        for one in range(len(texts))
        for other in range(one + 1, len(texts))
        if (both := shingles(texts[one]) & shingles(texts[other]))
        and len(both) / len(shingles(texts[one]) | shingles(texts[other])) >= 0.8
    }
    found = {group for group in near_groups(texts, 0.8) if len(group) > 1}
    assert found <= near, "whatever is found is near"
    assert len(found) >= 0.95 * len(near) > 20
