"""What `verify` finds, and that it finds nothing where nothing is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from orchard_core import AnswerSpan, DatasetNotFound, DatasetRow, DatasetWriter, RecordedTokens
from orchard_core.datasets.leaks.benchmark import Benchmark
from orchard_core.datasets.leaks.check import LeakCheck
from orchard_core.datasets.similar.tasks import TaskText
from orchard_core.datasets.store.manifest import Made
from orchard_core.datasets.verify import Verified, Verifier
from orchard_core.datasets.verify_row import row_faults

from .making import make_row, make_tokens
from .store.forging import edit_manifest, forge, not_utf8, put, write


def verified(root: Path, *, deep: bool = False, leaks: LeakCheck | None = None) -> Verified:
    verifier = Verifier(root, deep=deep, leaks=leaks)
    for _ in verifier.rows():
        pass
    return verifier.report()


def found(root: Path, *, deep: bool = False) -> list[tuple[str, int | None, str]]:
    return [(fault.file, fault.row, fault.field) for fault in verified(root, deep=deep).faults]


SHARD = "data/train-00000-of-00001.parquet"


def sound_row(number: int, **fields: Any) -> DatasetRow:
    """Tasks that nobody takes for each other."""
    words = " ".join(chr(97 + (number * 7 + place * 5) % 26) * (4 + place) for place in range(9))
    tokens: dict[str, Any] = {"tokens": make_tokens(), "token_count": 4} if number == 2 else {}
    return make_row(number, **{"task_text": words, **tokens, **fields})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write(tmp_path / "out", [sound_row(number) for number in range(8)])


@pytest.mark.parametrize("deep", [False, True])
def test_a_sound_dataset_has_no_fault(root: Path, deep: bool) -> None:
    report = verified(root, deep=deep)
    assert (report.faults, report.rows, report.shards, report.sound) == ((), 8, 1, True)


def test_a_changed_file_is_found_by_its_hash_even_where_no_row_is_read_otherwise(root: Path) -> None:
    path = root / SHARD
    data = bytearray(path.read_bytes())
    data[data.rindex(b"parquet-cpp")] ^= 1
    path.write_bytes(data)
    (fault,) = verified(root).faults
    assert (fault.file, fault.row, fault.message) == (
        SHARD,
        None,
        "its hash is not the manifest's: the file was changed",
    )


def test_every_row_that_cannot_be_read_is_listed_and_the_others_are_looked_at(root: Path) -> None:
    forge(root, put("outcome", 1, "glorious"))
    forge(root, put("messages", 7, "{}"))
    forge(root, not_utf8("messages", 5))
    assert found(root, deep=True) == [(SHARD, 1, "outcome"), (SHARD, 5, "messages"), (SHARD, 7, "messages")]
    assert verified(root, deep=True).rows == 6, "one of the readable rows has a fault"


def test_damaged_pages_are_listed_each(root: Path) -> None:
    path = root / SHARD
    data = bytearray(path.read_bytes())
    for group in (0, 2):
        chunk = pq.ParquetFile(path).metadata.row_group(group).column(1)
        data[chunk.data_page_offset + chunk.total_compressed_size - 3] ^= 0xFF
    path.write_bytes(data)
    assert found(root, deep=True) == [(SHARD, None, ""), (SHARD, 0, "messages"), (SHARD, 6, "messages")]


def test_an_id_that_comes_twice_is_listed_at_both_places(tmp_path: Path) -> None:
    rows = [sound_row(0), sound_row(1), sound_row(2, id="row0")]
    assert found(write(tmp_path / "out", rows)) == [(SHARD, 0, "id"), (SHARD, 2, "id")]


def test_a_task_in_two_splits_is_told_with_its_rows(tmp_path: Path) -> None:
    rows = [sound_row(0, split="train"), sound_row(1, split="test"), sound_row(0, split="test", id="other")]
    (fault,) = verified(write(tmp_path / "out", rows)).faults
    assert fault.message == "the task set/task0 stands in test (row other) and train (row row0)"


def test_nearly_equal_tasks_in_two_splits_are_told(tmp_path: Path) -> None:
    text = "Find the largest file below the home directory and write its name into answer dot txt please"
    rows = [
        sound_row(0, split="train", task_text=text),
        sound_row(1, split="test", task_text=f"{text}."),
        sound_row(2, split="test"),
    ]
    (fault,) = verified(write(tmp_path / "out", rows)).faults
    assert fault.message.startswith("the nearly equal tasks set/task0, set/task1 stand in test")


def test_what_is_nearly_equal_is_as_the_recipe_said(tmp_path: Path) -> None:
    text = "Find the largest file below the home directory and write its name into answer dot txt please"
    rows = [sound_row(0, split="train", task_text=text), sound_row(1, split="test", task_text=f"{text}.")]
    for name, similar, faults in (("apart", None, 0), ("together", 0.8, 1)):
        with DatasetWriter(tmp_path / name) as writer:
            for row in rows:
                writer.write(row)
            writer.finish(Made(recipe={"splits": {"similar_tasks": similar}}))
        assert len(verified(tmp_path / name).faults) == faults, name


def test_a_task_of_a_benchmark_is_told(root: Path) -> None:
    benchmark = Benchmark(
        name="exam", tasks=(TaskText(taskset="exam", task="q1", text=sound_row(3).task_text),)
    )
    report = verified(root, leaks=LeakCheck([benchmark]))
    assert [(fault.row, fault.field) for fault in report.faults] == [(3, "task")]
    assert "is q1 of the benchmark exam" in report.faults[0].message


def test_counts_of_the_manifest_that_the_rows_do_not_have_are_told(root: Path) -> None:
    edit_manifest(root, lambda fields: fields["splits"]["train"].update(tokens=1, trained_turns=9))
    assert found(root) == [
        ("manifest.json", None, "splits.train.tokens"),
        ("manifest.json", None, "splits.train.trained_turns"),
    ]


def test_a_file_that_the_manifest_does_not_know_is_told(root: Path) -> None:
    (root / "data" / "train-00007-of-00008.parquet").write_bytes(b"x")
    assert found(root) == [("data/train-00007-of-00008.parquet", None, "")]


def test_a_row_in_the_file_of_another_split_is_told(root: Path) -> None:
    forge(root, put("split", 3, "test"))
    assert found(root) == [(SHARD, 3, "split")]


def test_a_manifest_that_cannot_be_read_is_the_fault(root: Path) -> None:
    (root / "manifest.json").write_text("{")
    assert found(root) == [("manifest.json", None, "")]


def test_where_no_dataset_is_nothing_can_be_verified(tmp_path: Path) -> None:
    with pytest.raises(DatasetNotFound):
        verified(tmp_path)


# One row


def faults(**fields: Any) -> list[str]:
    return [field for field, _ in row_faults(make_row(0, **fields))]


def talk(*messages: Any) -> dict[str, object]:
    """A row of these messages, its other fields as they should be."""
    answers = [isinstance(message, dict) and message.get("role") == "assistant" for message in messages]
    return {"messages": json.dumps(messages), "mask": tuple(map(int, answers)), "turns": sum(answers)}


USER, END = {"role": "user", "content": "Go."}, {"role": "assistant", "content": "Done."}


def asks(*keys: str) -> dict[str, object]:
    calls = [{"id": key, "type": "function", "function": {"name": "run", "arguments": "{}"}} for key in keys]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def gives(key: str) -> dict[str, object]:
    return {"role": "tool", "tool_call_id": key, "content": "ok"}


def test_a_conversation_with_calls_and_their_results_is_sound() -> None:
    assert faults(**talk(USER, asks("a", "b"), gives("b"), gives("a"), asks("a"), gives("a"), END)) == []


def test_the_last_answer_may_call_without_a_result() -> None:
    assert faults(**talk(USER, asks("a"))) == []


def test_a_call_without_a_result_and_a_result_without_a_call_are_told() -> None:
    assert faults(**talk(USER, asks("a", "b"), gives("a"), END)) == ["messages[1].tool_calls[1]"]
    assert faults(**talk(USER, asks("a"), gives("a"), END, gives("a"))) == ["messages[4].tool_call_id"]


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ("hello", "messages[1]"),
        ({"role": "oracle", "content": "x"}, "messages[1].role"),
        ({"role": "user", "content": 7}, "messages[1].content"),
        ({"role": "user", "content": ["x"]}, "messages[1].content"),
        ({"role": "assistant", "tool_calls": {}}, "messages[1].tool_calls"),
        ({"role": "assistant", "tool_calls": [{"id": 7}]}, "messages[1].tool_calls[0].id"),
        (
            {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "run", "arguments": {}}}]},
            "messages[1].tool_calls[0].function.arguments",
        ),
        ({"role": "tool", "content": "x"}, "messages[1].tool_call_id"),
    ],
)
def test_a_message_of_the_wrong_shape_is_told_by_its_part(message: Any, field: str) -> None:
    assert faults(**talk(USER, message)) == [field]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"messages": "[{]"}, "messages"),
        ({"messages": '{"role": "user"}'}, "messages"),
        ({"tools": "none"}, "tools"),
        ({"tools": '[{"type": "function"}]'}, "tools[0].function.name"),
        ({"mask": (0,)}, "mask"),
        ({"mask": (1, 1)}, "mask[0]"),
        ({"mask": (0, 2)}, "mask[1]"),
        ({"turns": 2}, "turns"),
        ({"weights": (1.0,)}, "weights"),
        ({"values": (0.5,)}, "values"),
        ({"id": ""}, "id"),
    ],
)
def test_a_field_that_does_not_fit_the_messages_is_told(fields: dict[str, object], field: str) -> None:
    assert faults(**fields) == [field]


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"mask": (0, 0)}, "tokens.mask"),
        ({"logprobs": (0.0,)}, "tokens.logprobs"),
        ({"mask": (0, 0, 2, 1)}, "tokens.mask[2]"),
        ({"mask": (0, 1, 1, 1)}, "tokens.mask[1]"),
        ({"answers": (AnswerSpan(message=0, start=2, stop=4),)}, "tokens.answers[0].message"),
        ({"answers": (AnswerSpan(message=1, start=2, stop=9),)}, "tokens.answers[0]"),
        ({"token_ids": (1, 2, 3, 4), "versions": make_tokens().versions[:0]}, ""),
    ],
)
def test_token_ids_that_do_not_hang_together_are_told(changed: dict[str, Any], field: str) -> None:
    tokens: RecordedTokens = make_tokens().model_copy(update=changed)
    assert faults(tokens=tokens, token_count=4) == ([field] if field else [])


def test_a_count_that_is_not_that_of_the_ids_is_told() -> None:
    assert faults(tokens=make_tokens(), token_count=5) == ["token_count"]
