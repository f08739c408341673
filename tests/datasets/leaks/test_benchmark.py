"""What a user may name to be checked against."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchard_core import DatasetWriter
from orchard_core.datasets.leaks.benchmark import read_benchmark
from orchard_core.errors import ConfigError, DatasetCorrupt

from ..making import make_row


def written(path: Path, text: str | bytes) -> str:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


def test_a_task_set_is_its_tasks_with_their_digests() -> None:
    read = read_benchmark("workbench:3")
    assert len(read.tasks) == 3
    assert all(task.digest and task.text and task.taskset == "workbench:3" for task in read.tasks)


def test_a_text_file_is_a_text_a_line(tmp_path: Path) -> None:
    read = read_benchmark(written(tmp_path / "b.txt", "Do this\n\n  Do that  \n"))
    assert [(task.task, task.text) for task in read.tasks] == [("line-1", "Do this"), ("line-3", "Do that")]


def test_json_lines_hold_strings_or_objects(tmp_path: Path) -> None:
    lines = [json.dumps(each) for each in ("Do this", {"instance_id": "a-1", "problem_statement": "Mend it"})]
    read = read_benchmark(written(tmp_path / "b.jsonl", "\n".join(lines)))
    assert [(task.task, task.text) for task in read.tasks] == [("line-1", "Do this"), ("a-1", "Mend it")]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"{", "is no JSON"),
        (b"\xff", "is no UTF-8"),
        (b'{"a": 1}', "holds no text"),
        (b"[1]", "holds no text"),
    ],
)
def test_a_line_that_is_none_is_named(tmp_path: Path, line: bytes, said: str) -> None:
    path = written(tmp_path / "b.jsonl", b'"fine"\n' + line + b"\n")
    with pytest.raises(DatasetCorrupt, match=f"b.jsonl, row 1: {said}") as caught:
        read_benchmark(path)
    assert caught.value.hint


def test_a_name_that_nothing_has_is_refused_with_what_may_be_named() -> None:
    with pytest.raises(ConfigError, match="'no-such-bench' names no benchmark") as caught:
        read_benchmark("no-such-bench")
    assert "workbench" in caught.value.hint


def test_a_benchmark_without_a_task_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has no task"):
        read_benchmark(written(tmp_path / "b.txt", "\n \n"))


def test_a_dataset_is_the_tasks_of_its_rows_each_once(tmp_path: Path) -> None:
    with DatasetWriter(tmp_path / "set") as writer:
        for number in range(3):
            writer.write(make_row(number, task=f"t{number // 2}", task_text="Do it", taskset="mine"))
        writer.finish()
    read = read_benchmark(str(tmp_path / "set"))
    assert {(task.taskset, task.task, task.text) for task in read.tasks} == {
        ("mine", "t0", "Do it"),
        ("mine", "t1", "Do it"),
    }
    assert read.notes == ()


def test_a_json_lines_file_of_conversations_is_read_as_rows(tmp_path: Path) -> None:
    line = json.dumps(
        {"messages": [{"role": "user", "content": "Mend the gate"}, {"role": "assistant", "content": "Done"}]}
    )
    read = read_benchmark(written(tmp_path / "rows.jsonl", line + "\n"))
    assert [task.text for task in read.tasks] == ["Mend the gate"]


def test_a_benchmark_that_tells_no_instruction_says_so(tmp_path: Path) -> None:
    with DatasetWriter(tmp_path / "set") as writer:
        writer.write(make_row(0, task_text=""))
        writer.finish()
    assert "checked by id alone" in read_benchmark(str(tmp_path / "set")).notes[0]
