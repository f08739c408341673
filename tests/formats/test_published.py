"""The published microsoft/Orchard columns: files of theirs are read, and given back equal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchard_core import DatasetFormat, load_format, read_rows
from orchard_core.testing.suites.format_rows import TOOL

from .talks import PICTURE, Fields

pq = pytest.importorskip("pyarrow.parquet")

CALL = {"id": "c", "type": "function", "function": {"name": "bash", "arguments": '{"command":  "ls"}'}}
SWE: list[Fields] = [
    {
        "tools": json.dumps([TOOL], indent=1),
        "messages": [
            {"role": "user", "content": "Fix it.", "tool_call_id": None, "tool_calls": None},
            {"role": "assistant", "content": None, "tool_call_id": None, "tool_calls": [CALL]},
            {"role": "tool", "content": "a.py", "tool_call_id": "c", "tool_calls": None},
            {"role": "assistant", "content": "done", "tool_call_id": None, "tool_calls": None},
        ],
        "metadata": json.dumps(
            {"instance_id": "repo__1", "verify_status": status, "extra": {"a": [1, None]}}
        ),
    }
    for status in ("passed", "failed", "timeout", True)
]
GUI: list[Fields] = [
    {
        "messages": [
            {"role": "system", "content": "You browse."},
            {"role": "user", "content": content},
            {"role": "assistant", "content": "click 3"},
            {"role": "user", "content": "now?"},
            {"role": "assistant", "content": "stop"},
        ],
        "images": [PICTURE["image_url"]["url"]],  # type: ignore[index]
        "reward": 1.0,
        "status": "success",
        "metadata": json.dumps({"task_id": "t", "step": 2}),
    }
    for content in ("look <image> here", "no mark at all")
]


def written(given: list[Fields], path: Path, made: DatasetFormat) -> list[Any]:
    """Read, written again, and the values of that."""
    again = path.with_name(f"again-{path.name}")
    made.write(read_rows(path), again)
    if path.suffix == ".parquet":
        rows: list[Any] = pq.read_table(again).to_pylist()
        return rows
    return [json.loads(line) for line in again.read_text().splitlines()]


@pytest.fixture(params=["rows.jsonl", "rows.parquet"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Where their file lies."""
    return tmp_path / str(request.param)


def put(given: list[Fields], path: Path, schema: Any) -> list[Any]:
    """Lay down a file of theirs; gives its values."""
    if path.suffix == ".parquet":
        import pyarrow as pa  # type: ignore[import-untyped]

        pq.write_table(pa.Table.from_pylist(given, schema=schema), path)
        rows: list[Any] = pq.read_table(path).to_pylist()
        return rows
    path.write_text("".join(json.dumps(item) + "\n" for item in given))
    return given


def test_a_swe_file_is_read_and_given_back(path: Path) -> None:
    from orchard_core.formats.published.swe import _schema

    there = put(SWE, path, _schema())
    rows = list(read_rows(path))
    assert [row.reward for row in rows] == [1.0, 0.0, None, 1.0]
    assert {row.task for row in rows} == {"repo__1"}
    assert rows[0].mask == (0, 1, 0, 1)
    assert json.loads(rows[0].messages)[1]["tool_calls"] == [CALL], "the arguments' blanks are kept"
    assert written(SWE, path, load_format("orchard-swe")) == there


def test_a_changed_row_says_so_beside_what_it_was(path: Path) -> None:
    from orchard_core.formats.published.swe import _schema

    put(SWE, path, _schema())
    row = next(iter(read_rows(path))).model_copy(update={"mask": (0, 0, 0, 1)})
    load_format("orchard-swe").write([row], path.with_name("changed.jsonl"))
    (line,) = path.with_name("changed.jsonl").read_text().splitlines()
    metadata = json.loads(json.loads(line)["metadata"])
    assert metadata["orchard"]["mask"] == [0, 0, 0, 1]
    assert (metadata["instance_id"], metadata["extra"]) == ("repo__1", {"a": [1, None]})
    (back,) = read_rows(path.with_name("changed.jsonl"))
    assert back.mask == (0, 0, 0, 1)
    load_format("orchard-swe").write([back], path.with_name("twice.jsonl"))
    twice = json.loads(json.loads(path.with_name("twice.jsonl").read_text())["metadata"])
    assert twice["extra"] == {"a": [1, None]}, "what is theirs survives every turn"


def test_a_gui_file_is_read_and_given_back(path: Path) -> None:
    from orchard_core.formats.published.beside import image_bytes
    from orchard_core.formats.published.gui import _schema

    packed = path.suffix == ".parquet"
    given = [
        {**item, "images": [image_bytes(url) for url in item["images"]]} if packed else item for item in GUI
    ]
    there = put(given, path, _schema())
    marked, unmarked = read_rows(path)
    assert json.loads(marked.messages)[1]["content"] == [
        {"type": "text", "text": "look "}, PICTURE, {"type": "text", "text": " here"},
    ]  # fmt: skip
    assert json.loads(unmarked.messages)[3]["content"] == [PICTURE, {"type": "text", "text": "now?"}]
    assert marked.mask == unmarked.mask == (0, 0, 0, 0, 1), "one row is one decision"
    assert (marked.reward, marked.task) == (1.0, "t")
    again = written(given, path, load_format("orchard-gui"))
    assert again[0] == there[0]
    assert again[1]["messages"][3]["content"] == "<image>now?", "a picture without a place has got one"
    again[1]["messages"][3]["content"] = "now?"
    assert {**again[1], "metadata": there[1]["metadata"]} == there[1]


def test_each_trained_answer_can_be_a_row_of_its_own(tmp_path: Path) -> None:
    put(GUI, tmp_path / "rows.jsonl", None)
    whole = [row.model_copy(update={"mask": (0, 0, 1, 0, 1)}) for row in read_rows(tmp_path / "rows.jsonl")][
        :1
    ]
    load_format("orchard-gui", steps=True).write(whole, tmp_path / "steps.jsonl")
    steps = list(read_rows(tmp_path / "steps.jsonl"))
    assert [len(row.mask) for row in steps] == [3, 5]
    assert [row.mask[-1] for row in steps] == [1, 1]
    assert all(sum(row.mask) == 1 for row in steps)
