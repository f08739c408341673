"""Which tasks count as one."""

from __future__ import annotations

from dataclasses import replace

from orchard_core import load_taskset
from orchard_core.datasets.similar.tasks import TaskText, near_tasks, task_of, template, text_of
from orchard_core.types.dataset import DatasetRow

BOOK = "Book a table for two at the small Italian place near the station for tomorrow evening at eight"


def task(name: str, text: str = BOOK, *, taskset: str = "web", digest: str = "", group: str = "") -> TaskText:
    return TaskText(taskset=taskset, task=name, text=text, digest=digest, group=group)


def groups(*tasks: TaskText, near: float | None = 0.8) -> set[frozenset[str]]:
    found = near_tasks(tasks, near)
    return {frozenset(name for _, name in group) for group in found}


def both(one: str, other: str) -> set[frozenset[str]]:
    return {frozenset({one, other})}


def each(*names: str) -> set[frozenset[str]]:
    return {frozenset({name}) for name in names}


def test_the_same_instruction_under_two_names_is_one_task() -> None:
    assert groups(task("a"), task("b", BOOK.upper() + "!")) == both("a", "b")


def test_a_word_more_is_the_same_task_and_other_words_are_another() -> None:
    assert groups(task("a"), task("b", f"Please {BOOK}")) == both("a", "b")
    assert groups(task("a"), task("b", "Cancel the table that I booked and tell the host why")) == each(
        "a", "b"
    )


def test_other_files_make_another_task_where_the_set_says_so() -> None:
    assert groups(task("a", digest="1"), task("b", digest="2")) == each("a", "b")
    assert groups(task("a", digest="1"), task("b")) == both("a", "b"), "one digest says nothing"
    assert groups(task("a", digest="1"), task("b", digest="2", taskset="other")) == both("a", "b")


def test_other_values_in_the_same_words_are_told_apart_and_other_words_are_not() -> None:
    one = task("a", f"{BOOK} under booking-17", digest="1")
    assert groups(one, task("b", f"{BOOK} under booking-99", digest="2")) == each("a", "b")
    assert groups(one, task("b", f"{BOOK} under booking-17 please", digest="2")) == both("a", "b")


def test_one_digest_is_one_task_whatever_its_set_and_name() -> None:
    other = task("b", "Quite other words", taskset="mirror", digest="1")
    assert groups(task("a", digest="1"), other, near=None) == both("a", "b")


def test_what_the_user_ties_stays_together() -> None:
    tied = [task("a", "Mend the parser", group="repo"), task("b", "Add a flag to the server", group="repo")]
    assert groups(*tied) == both("a", "b")


def test_a_count_is_no_part_of_a_task_sets_name() -> None:
    assert len(near_tasks([task("a", taskset="workbench:4"), task("a", taskset="workbench:400")])) == 1
    assert task("a", taskset="harbor:one").key != task("a", taskset="harbor:two").key


def test_tasks_without_an_id_go_by_their_text() -> None:
    assert task("", "Do it.").key == task("", "do IT").key != task("", "do that").key


def test_tasks_that_say_nothing_are_not_near() -> None:
    assert groups(task("a", ""), task("b", "..."), task("c", "...")) == each("a", "b", "c")


def test_a_template_is_words_without_values() -> None:
    told = "Set port to 6747 in the section [umber] of service.ini, and don't touch the rest."
    assert template(told) == "set port to \0 in the section \0 of \0 and don't touch the rest"


def test_the_generated_tasks_of_workbench_are_all_different() -> None:
    tasks = [text_of(each) for each in load_taskset("workbench:60").tasks()]
    assert len(near_tasks(tasks)) == 60
    bare = [replace(each, digest="") for each in tasks]
    assert len(near_tasks(bare)) < 20, "by their texts alone they are some dozen templates"


def test_a_row_tells_its_task_and_the_digest_in_its_provenance() -> None:
    row = DatasetRow(
        id="r", rollout="r", messages="[]", mask=(), token_count=0, turns=0, taskset="workbench:2", task="t",
        task_text="Do", provenance={"task_digest": "d"},
    )  # fmt: skip
    assert task_of(row) == TaskText(taskset="workbench:2", task="t", text="Do", digest="d")
    assert task_of(row.model_copy(update={"provenance": {"task_digest": 3}})).digest == ""
