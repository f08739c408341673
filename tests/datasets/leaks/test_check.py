"""What leaks into a dataset from a benchmark, and what does not."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from orchard_core import load_taskset
from orchard_core.datasets.leaks.benchmark import Benchmark
from orchard_core.datasets.leaks.check import LeakCheck, check_leaks
from orchard_core.datasets.leaks.report import Leak, LeakKind, LeakSettings
from orchard_core.datasets.similar.tasks import TaskText, text_of
from orchard_core.types.dataset import DatasetRow

MERGE = (
    "people.json lists people with the id of their team; teams.json maps team ids to team names. Write "
    "active.json: an object that maps the name of each team to the sorted list of names of its active people."
)
SHORT = "Find the cheapest direct flight from Seattle to Reykjavik next Friday"


def words(seed: int, count: int) -> str:
    random = Random(seed)
    return " ".join(f"{random.choice('abcdefgh')}{random.randrange(5000)}" for _ in range(count))


def bench(*tasks: TaskText, name: str = "bench", settings: LeakSettings | None = None) -> LeakCheck:
    return LeakCheck([Benchmark(name=name, tasks=tasks)], settings)


def known(text: str = MERGE, *, task: str = "one", digest: str = "") -> TaskText:
    return TaskText(taskset="bench", task=task, text=text, digest=digest)


def asked(text: str, *, task: str = "mine", taskset: str = "web", digest: str = "") -> TaskText:
    return TaskText(taskset=taskset, task=task, text=text, digest=digest)


def found(check: LeakCheck, task: TaskText) -> tuple[LeakKind, str] | None:
    leak = check.task(task)
    return (leak.kind, leak.benchmark_task) if leak else None


def row(number: int, text: str, said: Iterable[str] = ()) -> DatasetRow:
    messages = [{"role": "user", "content": text}, *({"role": "assistant", "content": each} for each in said)]
    return DatasetRow(
        id=f"r{number}", rollout=f"r{number}", messages=json.dumps(messages), mask=(0,) * len(messages),
        token_count=9, turns=len(messages) - 1, taskset="web", task=f"t{number}", task_text=text,
    )  # fmt: skip


def test_the_same_task_of_the_same_set_is_found_by_its_id() -> None:
    check = bench(known())
    assert found(check, asked("Other words", task="one", taskset="bench")) == (LeakKind.ID, "one")
    assert found(check, asked("Other words", task="one", taskset="web")) is None


def test_an_id_that_says_something_is_found_under_any_set() -> None:
    check = bench(known(task="astropy__astropy-12907"))
    mine = asked("Other words", task="astropy__astropy-12907", taskset="swe-mirror")
    assert found(check, mine) == (LeakKind.ID, "astropy__astropy-12907")


def test_the_same_content_is_found_by_its_digest() -> None:
    assert found(bench(known(digest="d1")), asked("Other words", digest="d1")) == (LeakKind.DIGEST, "one")


def test_the_same_text_is_found_whatever_its_case_and_marks() -> None:
    assert found(bench(known()), asked(MERGE.upper().replace(";", " -"))) == (LeakKind.TEXT, "one")


def test_a_near_duplicate_text_is_found_with_its_resemblance() -> None:
    leak = bench(known()).task(asked(f"{MERGE} Take care."))
    assert leak is not None
    assert (leak.kind, leak.where) == (LeakKind.NEAR, "task")
    assert 0.8 <= leak.share < 1
    assert leak.text.startswith("people json lists people")


def test_a_benchmark_text_inside_a_longer_one_is_found_with_what_both_have() -> None:
    leak = bench(known(), known(words(1, 60), task="two")).task(
        asked(f"{words(2, 80)} {MERGE} {words(3, 80)}")
    )
    assert leak is not None
    assert (leak.kind, leak.benchmark_task, leak.share) == (LeakKind.WORDS, "one", 1.0)
    assert leak.text.startswith("people json lists people with the id")
    assert len(leak.text) <= 200


def test_a_quoted_sentence_is_no_leak_and_half_the_text_is() -> None:
    text = words(4, 100)
    part = text.split()
    check = bench(known(text))
    assert found(check, asked(f"{words(5, 50)} {' '.join(part[:30])} {words(6, 50)}")) is None
    assert found(check, asked(f"{words(5, 50)} {' '.join(part[:55])} {words(6, 50)}")) == (
        LeakKind.WORDS,
        "one",
    )


def test_short_instructions_are_found_inside_others_by_shorter_runs() -> None:
    check = bench(known(SHORT))
    assert found(check, asked(f"Hello. {SHORT}, and tell me its price, carrier and length in hours")) == (
        LeakKind.WORDS,
        "one",
    )
    assert found(check, asked("Find the cheapest direct train from Oslo to Bergen next Friday")) is None


def test_very_short_instructions_are_found_as_a_whole_alone() -> None:
    check = bench(known("Rename all files"))
    assert found(check, asked("rename ALL files.")) == (LeakKind.TEXT, "one")
    assert found(check, asked("Rename all files that end in txt and list them in names.md")) is None
    assert "too short" in check.benchmarks[0].notes[0]


def test_what_many_tasks_of_a_benchmark_share_is_its_boilerplate() -> None:
    frame = words(7, 60)
    check = bench(*(known(f"{frame} {words(10 + n, 30)}", task=f"t{n}") for n in range(5)))
    assert found(check, asked(f"{frame} {words(99, 90)}")) is None
    assert found(check, asked(f"{words(98, 90)} {words(12, 30)}")) == (LeakKind.WORDS, "t2")


def test_the_strongest_ground_is_told() -> None:
    check = LeakCheck(
        [Benchmark(name="a", tasks=(known(f"{MERGE} Go."),)), Benchmark(name="b", tasks=(known(task="two"),))]
    )
    leak = check.task(asked(MERGE))
    assert leak is not None
    assert (leak.benchmark, leak.kind) == ("b", LeakKind.TEXT)


def test_generated_tasks_of_other_seeds_are_no_leaks_and_the_same_tasks_are() -> None:
    check = LeakCheck.against("workbench:24")
    same = [text_of(each) for each in load_taskset("workbench:24").tasks()]
    others = [text_of(each) for each in load_taskset("workbench:120", seed=1000).tasks()]
    assert [found(check, each) for each in others] == [None] * 120
    assert {check.task(each).kind for each in same} == {LeakKind.ID}  # type: ignore[union-attr]
    renamed = [replace(each, taskset="mine", task=f"m{n}", digest="") for n, each in enumerate(same)]
    assert {check.task(each).kind for each in renamed} == {LeakKind.TEXT}  # type: ignore[union-attr]


def test_rows_are_reported_in_their_order_each_task_looked_at_once() -> None:
    rows = [row(1, words(1, 40)), row(2, MERGE), row(3, words(3, 40)), row(4, f"{MERGE} Now.")]
    report = check_leaks(iter([*rows, rows[1]]), bench(known()))
    assert [(leak.row, leak.kind) for leak in report.leaks] == [
        ("r2", LeakKind.TEXT), ("r4", LeakKind.NEAR), ("r2", LeakKind.TEXT),
    ]  # fmt: skip
    assert (report.rows, report.tasks, report.clean) == (5, 4, False)
    assert report.benchmarks[0].tasks == 1


def test_conversations_are_looked_at_when_asked_for() -> None:
    leaking = row(1, "Help me", ["I found this:", f"the task reads {MERGE}"])
    assert check_leaks([leaking], bench(known())).clean
    report = check_leaks([leaking], bench(known(), settings=LeakSettings(conversations=True)))
    assert [(leak.row, leak.kind, leak.where) for leak in report.leaks] == [
        ("r1", LeakKind.WORDS, "messages")
    ]


@given(st.text(max_size=300), st.text(max_size=300))
def test_no_text_breaks_the_check_and_each_text_is_found_to_be_itself(text: str, other: str) -> None:
    check = bench(known(text))
    leak: Leak | None = check.task(asked(text))
    assert (leak is not None) == any(letter.isalnum() for letter in text) or not text.isascii()
    check.task(asked(other))
    check.conversation(row(1, other))
