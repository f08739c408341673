"""Splits by task."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchard_core.datasets.similar.tasks import TaskText
from orchard_core.datasets.splits import Splits, assign_splits
from orchard_core.errors import ConfigError


def task(number: int, group: str = "") -> TaskText:
    random = Random(number)
    words = " ".join(f"w{random.randrange(10_000)}" for _ in range(30))
    return TaskText(taskset="web", task=f"t{number}", text=words, group=group)


def tasks(count: int, first: int = 0) -> list[TaskText]:
    return [task(number) for number in range(first, first + count)]


def near_copy(of: TaskText, name: str) -> TaskText:
    return TaskText(taskset="mirror", task=name, text=f"{of.text} please")


NAMES = st.sampled_from(["train", "dev", "test", "held_out"])
SHARES = st.dictionaries(NAMES, st.floats(0.05, 1.0), min_size=1, max_size=4)


@given(st.integers(0, 40), SHARES, st.integers(0, 3), st.randoms())
def test_every_task_gets_one_split_whatever_the_order(
    count: int, shares: dict[str, float], seed: int, random: Random
) -> None:
    given_tasks = tasks(count)
    made = assign_splits(given_tasks, shares, seed=seed)
    assert set(made.of) == {each.key for each in given_tasks}
    assert set(made.of.values()) <= set(shares)
    assert sum(made.tasks.values()) == count
    shuffled = random.sample(given_tasks, count) + given_tasks[: count // 2]
    turned = dict(reversed(list(shares.items())))
    assert assign_splits(shuffled, turned, seed=seed).of == made.of


@given(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=40), SHARES, st.integers(0, 3))
def test_what_belongs_together_is_never_parted(
    letters: list[str], shares: dict[str, float], seed: int
) -> None:
    tied = [task(number, group=letter) for number, letter in enumerate(letters)]
    copies = [near_copy(each, f"copy-{number}") for number, each in enumerate(tied[::3])]
    made = assign_splits([*tied, *copies], shares, seed=seed)
    by_letter = {(each.group, made.split(each)) for each in tied}
    assert len(by_letter) == len(set(letters))
    assert [made.split(copy) for copy in copies] == [made.split(each) for each in tied[::3]]


@given(st.integers(30, 120), st.integers(0, 5))
def test_shares_are_met_to_a_task_where_no_group_forbids_it(count: int, seed: int) -> None:
    made = assign_splits(tasks(count), {"train": 8, "dev": 1, "test": 1}, seed=seed)
    for name, share in {"train": 0.8, "dev": 0.1, "test": 0.1}.items():
        assert abs(made.tasks[name] - share * count) <= max(1, 0.01 * count)
        assert made.reached[name] == made.tasks[name] / count
    assert made.notes == ()


def test_another_seed_gives_another_split() -> None:
    one, other = (assign_splits(tasks(100), {"train": 0.5, "test": 0.5}, seed=seed) for seed in (0, 1))
    assert one.of != other.of


def test_tasks_that_are_added_move_hardly_any_other() -> None:
    before = assign_splits(tasks(3000), {"train": 0.8, "test": 0.2})
    after = assign_splits(tasks(3300), {"train": 0.8, "test": 0.2})
    assert sum(before.of[key] != after.of[key] for key in before.of) < 30


def test_no_task_moves_that_is_kept() -> None:
    before = assign_splits(tasks(50), {"train": 0.8, "test": 0.2})
    copy = near_copy(next(each for each in tasks(50) if before.split(each) == "test"), "copy")
    after = assign_splits(
        [*tasks(50, first=0), *tasks(60, first=100), copy], {"train": 0.8, "test": 0.2}, keep=before.of
    )
    assert before.of.items() <= after.of.items()
    assert after.split(copy) == "test"
    assert after.tasks["test"] == pytest.approx(0.2 * 111, abs=2)


def test_kept_tasks_that_have_become_one_go_to_one_split_and_it_is_said() -> None:
    one, other = task(1), task(2)
    before = {one.key: "train", other.key: "test"}
    tied = [TaskText(taskset="web", task=each.task, text=each.text, group="same") for each in (one, other)]
    made = assign_splits(tied, {"train": 0.5, "test": 0.5}, keep=before)
    assert len(set(made.of.values())) == 1
    assert any("near duplicates now" in note for note in made.notes)


def test_a_group_larger_than_a_split_is_told() -> None:
    tied = [task(number, group="one site") for number in range(30)]
    made = assign_splits([*tied, *tasks(70, first=100)], {"train": 0.8, "test": 0.2})
    assert {made.split(each) for each in tied} == {"train"}
    assert made.notes == (
        "a group of 30 near-duplicate tasks is larger than split test should be (20 of 100 tasks)",
    )
    assert made.near == (tuple(sorted(each.key for each in tied)),)
    assert made.groups == 71


def test_a_split_without_a_task_is_told() -> None:
    made = assign_splits(tasks(1), {"train": 0.9, "test": 0.1})
    assert made.tasks == {"test": 0, "train": 1}
    assert "split test has no task" in made.notes[0]


def test_a_share_of_nothing_gets_nothing() -> None:
    assert assign_splits(tasks(200), {"train": 1, "test": 0}).tasks == {"train": 200, "test": 0}


def test_no_tasks_are_no_error() -> None:
    made: Splits = assign_splits([], {"train": 1})
    assert (made.of, made.reached) == ({}, {"train": 0.0})


@pytest.mark.parametrize(
    "shares",
    [{}, {"train": 0}, {"train": -1, "test": 2}, {"": 1}, {"train": float("inf")}, {"a": float("nan")}],
)
def test_shares_that_are_none_are_refused(shares: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="shares of splits"):
        assign_splits(tasks(3), shares)


def test_a_kept_split_without_a_share_is_refused() -> None:
    with pytest.raises(ConfigError, match="held_out"):
        assign_splits(tasks(3), {"train": 1}, keep={task(1).key: "held_out"})
