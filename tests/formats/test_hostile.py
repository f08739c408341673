"""Files that somebody has broken, or made to break us: an error that names file, row and field."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard

from orchard_core import DatasetCorrupt, DatasetRow, load_format
from orchard_core.testing.suites.format_rows import chat, plain_rows, row

from .environments import run
from .talks import Fields

arrow = pytest.importorskip("pyarrow")
GOOD = json.dumps({"messages": chat("fine")}).encode()


def fault(path: Path, name: str = "hf") -> tuple[list[DatasetRow], DatasetCorrupt]:
    """Rows before the fault, and the fault."""
    rows: list[DatasetRow] = []

    def read() -> Iterator[None]:
        for item in load_format(name).read(path):
            rows.append(item)
            yield

    with pytest.raises(DatasetCorrupt) as raised:
        list(read())
    return rows, raised.value


WRONG: dict[str, tuple[bytes, str]] = {
    "no JSON": (b"{oops", ""),
    "no object": (b"[1, 2]", ""),
    "a number": (b"5", ""),
    "no messages": (b'{"text": "hi"}', "messages"),
    "null messages": (b'{"messages": null}', "messages"),
    "messages of another kind": (b'{"messages": 5}', "messages"),
    "a message of another kind": (b'{"messages": [1]}', "messages[0]"),
    "no role": (b'{"messages": [{"content": "x"}]}', "messages[0].role"),
    "an empty role": (b'{"messages": [{"role": "", "content": "x"}]}', "messages[0].role"),
    "a role of another kind": (b'{"messages": [{"role": [], "content": "x"}]}', "messages[0].role"),
    "content of another kind": (b'{"messages": [{"role": "user", "content": 5}]}', "messages[0].content"),
    "a part of another kind": (b'{"messages": [{"role": "user", "content": [5]}]}', "messages[0].content[0]"),
    "a part without a type": (
        b'{"messages": [{"role": "user", "content": [{}]}]}',
        "messages[0].content[0].type",
    ),
    "calls of another kind": (
        b'{"messages": [{"role": "assistant", "tool_calls": 5}]}',
        "messages[0].tool_calls",
    ),
    "a call without a name": (
        b'{"messages": [{"role": "assistant", "tool_calls": [{"function": {}}]}]}',
        "messages[0].tool_calls[0].function.name",
    ),
    "arguments of another kind": (
        b'{"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": 5}}]}]}',
        "messages[0].tool_calls[0].function.arguments",
    ),
    "tools that are no JSON": (b'{"messages": [], "tools": "{"}', "tools"),
    "tools of another kind": (b'{"messages": [], "tools": [1]}', "tools"),
    "not UTF-8": (b'{"messages": [{"role": "user", "content": "\xff\xfe"}]}', ""),
    "a mask that is too short": (b'{"messages": [{"role": "assistant", "content": ""}], "mask": []}', "mask"),
    "a mask on a user": (b'{"messages": [{"role": "user", "content": ""}], "mask": [1]}', "mask"),
    "a mask of another kind": (b'{"messages": [], "mask": "x"}', "mask"),
    "rows of a newer version": (
        b'{"messages": [], "orchard": "{\\"schema_version\\": 99}"}',
        "orchard.schema_version",
    ),
    "facts that are no JSON": (b'{"messages": [], "orchard": "{"}', "orchard"),
    "an unknown fact": (b'{"messages": [], "orchard": "{\\"surprise\\": 1}"}', "surprise"),
    "NaN": (b'{"messages": [], "score": NaN}', ""),
    "an endless number": (b'{"messages": [], "score": 1e999}', ""),
    "a number of 10,000 digits": (b'{"messages": [], "score": ' + b"9" * 10_000 + b"}", ""),
    "deep nesting": (b'{"messages": ' + b"[" * 500 + b"]" * 500 + b"}", ""),
    "deeper nesting": (b'{"messages": ' + b"[" * 500_000 + b"]" * 500_000 + b"}", ""),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_row_is_named_and_the_rows_before_it_are_given(tmp_path: Path, name: str) -> None:
    wrong, field = WRONG[name]
    path = tmp_path / "rows.jsonl"
    path.write_bytes(GOOD + b"\n\n" + GOOD + b"\n" + wrong + b"\n" + GOOD)
    rows, error = fault(path)
    assert len(rows) == 2
    assert (error.path, error.row) == (str(path), 2)
    assert error.field == field
    assert len(str(error)) < 1000


def test_members_that_repeat_count_once(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"messages": 1, "messages": [{"role": "user", "role": "assistant", "content": "x"}]}')
    (read,) = load_format("hf").read(path)
    assert json.loads(read.messages) == [{"role": "assistant", "content": "x"}]


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_a_cut_packed_file_is_told_from_a_whole_one(tmp_path: Path, ending: str) -> None:
    whole = tmp_path / f"rows.jsonl{ending}"
    load_format("hf").write(plain_rows() * 40, whole)
    cut = tmp_path / f"cut.jsonl{ending}"
    for size in (whole.stat().st_size - 1, whole.stat().st_size // 2, 40):
        cut.write_bytes(whole.read_bytes()[:size])
        rows, error = fault(cut)
        assert "cut" in error.message or "damaged" in error.message, error
        assert len(rows) <= 240


def test_a_cut_table_is_no_table(tmp_path: Path) -> None:
    whole = tmp_path / "rows.parquet"
    load_format("hf").write(plain_rows(), whole)
    (tmp_path / "cut.parquet").write_bytes(whole.read_bytes()[:-20])
    rows, error = fault(tmp_path / "cut.parquet")
    assert rows == []
    assert error.path.endswith("cut.parquet")


def table(path: Path, **columns: Any) -> Path:
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    pq.write_table(arrow.table(columns), path)
    return path


def test_wrong_columns_of_a_table_are_named(tmp_path: Path) -> None:
    path = table(tmp_path / "a.parquet", text=["x"])
    assert fault(path)[1].field == "messages"
    assert fault(path, "orchard-swe")[1].field == "tools"
    assert fault(path, "orchard-gui")[1].field == "messages"
    path = table(tmp_path / "b.parquet", messages=["x"], tools=["[]"], metadata=["{}"])
    assert fault(path)[1].field == "messages"
    swe = table(
        tmp_path / "c.parquet", messages=[[{"role": "user", "content": "x"}]], tools=["[]"], metadata=["{"]
    )
    assert fault(swe, "orchard-swe")[1].field == "metadata"


def test_texts_that_are_not_utf8_are_named(tmp_path: Path) -> None:
    text = arrow.array([b"fine", b"\xff\xfe"], arrow.binary()).view(arrow.string())
    messages = [[{"role": "user", "content": "x"}]] * 2
    rows, error = fault(table(tmp_path / "a.parquet", messages=messages, note=text))
    assert len(rows) == 1
    assert (error.row, error.field) == (1, "note")


def test_nulls_that_other_rows_left_behind_are_dropped(tmp_path: Path) -> None:
    """Nested columns give every row the members of all: neither calls nor arguments may grow by that."""
    one = {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}],
    }
    two = {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"function": {"name": "g", "arguments": {"b": "x"}}}],
    }
    user = {"role": "user", "content": "hi"}
    tools = [
        [{"type": "function", "function": {"name": "f", "parameters": {"a": "int"}}}],
        [{"type": "function"}],
    ]
    path = table(tmp_path / "a.parquet", messages=[[user, one], [user, two]], tools=tools)
    rows = list(load_format("hf").read(path))
    said = [json.loads(item.messages) for item in rows]
    assert said[0][0] == {"role": "user", "content": "hi"}
    assert [talk[1]["tool_calls"][0]["function"]["arguments"] for talk in said] == ['{"a":1}', '{"b":"x"}']
    assert json.loads(rows[1].tools) == [{"type": "function"}]


SHAPES: list[Fields] = [
    {"messages": chat("x"), "tools": [{"type": "function", "function": {"name": "f"}}]},
    {"messages": chat("x"), "tools": '[{"type": "function", "function": {"name": "f"}}]'},
    {
        "messages": json.dumps(chat("x")),
        "tools": json.dumps([{"type": "function", "function": {"name": "f"}}]),
    },
    {
        "messages": [json.dumps(message) for message in chat("x")],
        "tools": [{"type": "function", "function": {"name": "f"}}],
    },
    {
        "prompt": chat("x")[:1],
        "completion": chat("x")[1:],
        "tools": [{"type": "function", "function": {"name": "f"}}],
    },
]


@pytest.mark.parametrize(
    "shape", SHAPES, ids=lambda shape: " ".join(f"{k}:{type(v).__name__}" for k, v in shape.items())
)
def test_every_shape_that_is_about_gives_the_same_row(tmp_path: Path, shape: Fields) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps(shape))
    (tmp_path / "rows.json").write_text(json.dumps([shape], indent=1))
    for name in ("rows.jsonl", "rows.json"):
        (read,) = load_format("hf").read(tmp_path / name)
        assert json.loads(read.messages) == chat("x")
        assert json.loads(read.tools) == [{"type": "function", "function": {"name": "f"}}]
        assert read.mask == (0, 1)


OTHER_COLUMNS = {"messages": chat("x"), "score": 0.5, "source": "web", "nested": {"a": [1, {"b": None}]}}


def test_a_foreign_file_is_given_back(tmp_path: Path) -> None:
    called: Fields = {"role": "assistant", "content": None, "tool_calls": [
        {"id": "1", "type": "function", "function": {"name": "f", "arguments": {"a": None}}},
    ]}  # fmt: skip
    given: list[Fields] = [OTHER_COLUMNS, {"messages": [called], "tools": [{"type": "function"}]}]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(item) + "\n" for item in given))
    hf = load_format("hf", facts=False)
    hf.write(hf.read(path), tmp_path / "again.jsonl")
    again = [json.loads(line) for line in (tmp_path / "again.jsonl").read_text().splitlines()]
    assert [item | {"tools": item.get("tools", "[]")} for item in given] == again


MEASURED = """
import sys, time
from pathlib import Path
from tempfile import NamedTemporaryFile
from orchard_core import DatasetCorrupt, load_format

def peak():  # ru_maxrss starts at the peak of whoever began this
    return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])

began = time.process_time()
with NamedTemporaryFile(suffix=".jsonl") as nothing:
    list(load_format("hf").read(Path(nothing.name)))  # what imports cost
before = peak()
try:
    for row in load_format(sys.argv[1]).read(Path(sys.argv[2])):
        pass
except DatasetCorrupt as error:
    print(error.row, error.field, error.message)
print((peak() - before) // 1024)
"""


def measured(path: Path, name: str = "hf") -> tuple[str, int]:
    """What is said of a file, and the MiB that it took to find out."""
    root = Path(__file__).parents[2]
    *said, mebibytes = run(Path(sys.executable), MEASURED, name, str(path), path=root).splitlines()
    return " ".join(said), int(mebibytes)


def test_a_field_of_100_mb_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(GOOD + b'\n{"messages": [{"role": "user", "content": "' + b"x" * 100_000_000 + b'"}]}\n')
    said, mebibytes = measured(path)
    assert "row 1, field messages: it has 100 MB" in said
    assert mebibytes < 900


def test_a_line_without_end_is_not_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    with path.open("wb") as file:
        file.write(GOOD + b'\n{"messages": "')
        file.truncate(1_000_000_000)
    said, mebibytes = measured(path)
    assert "row 1: this row has more than 128 MiB" in said
    assert mebibytes < 600


def bomb(ending: str) -> bytes:
    """Lines of blanks that unpack to gigabytes."""
    if ending == ".gz":
        return gzip.compress(b" " * 100_000_000 + b"\n", 9) * 4
    return zstandard.ZstdCompressor().compress(b"\n" * 400_000_000) * 2


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_a_bomb_is_not_unpacked(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"rows.jsonl{ending}"
    path.write_bytes(bomb(ending))
    said, mebibytes = measured(path)
    assert "times its size" in said
    assert mebibytes < 600


@pytest.mark.slow
def test_rows_that_repeat_one_large_text_are_read_a_few_at_a_time(tmp_path: Path) -> None:
    """A dictionary page makes a small file of them; unpacked together they would be 400 MB."""
    large = "x" * 4_000_000
    messages = [[{"role": "user", "content": large}]] * 100
    path = table(tmp_path / "rows.parquet", messages=messages)
    assert path.stat().st_size < 8_000_000
    said, mebibytes = measured(path)
    assert said == ""
    assert mebibytes < 1000


def test_a_row_of_ours_is_read_with_any_row_before_it(tmp_path: Path) -> None:
    given = [row(n, chat("ü" * n)) for n in range(200)]
    load_format("hf").write(given, tmp_path / "rows.jsonl")
    assert [item.id for item in load_format("hf").read(tmp_path / "rows.jsonl")] == [
        item.id for item in given
    ]
