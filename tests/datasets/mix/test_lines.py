"""The quick way through JSON lines gives what the format itself gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchard_core.datasets.mix.lines import ReadRow, is_lines, line_rows
from orchard_core.datasets.reading import read_rows
from orchard_core.errors import DatasetCorrupt
from tests.datasets.mix.making import TOOLS, line

TEXT = st.text(max_size=8)
CALL = st.fixed_dictionaries(
    {"id": TEXT, "type": st.just("function")},
    optional={
        "function": st.fixed_dictionaries(
            {"name": TEXT, "arguments": TEXT | st.dictionaries(TEXT, st.integers(), max_size=2) | st.none()}
        ),
        "index": st.integers(0, 3),
    },
)
MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool"]), "content": TEXT | st.none()},
    optional={
        "tool_calls": st.lists(CALL, max_size=2),
        "tool_call_id": TEXT | st.none(),
        "reasoning_content": TEXT,
    },
)
RECORD = st.fixed_dictionaries(
    {"messages": st.lists(MESSAGE, max_size=4)},
    optional={
        "tools": st.sampled_from([TOOLS, "[]", "", None, [], json.loads(TOOLS)]),
        "score": st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**70), 2**70),
        "note": TEXT | st.none() | st.booleans(),
        "orchard": st.sampled_from([json.loads(line("r"))["orchard"], {"schema_version": 1, "task": "t"}]),
    },
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(records=st.lists(RECORD, min_size=1, max_size=3), spaced=st.booleans())
def test_lines_are_read_as_the_format_reads_them(
    tmp_path: Path, records: list[dict[str, Any]], spaced: bool
) -> None:
    path = tmp_path / "a.jsonl"
    separators = None if spaced else (",", ":")
    path.write_text("".join(json.dumps(record, separators=separators) + "\n" for record in records))
    assert is_lines(path)
    theirs = _outcome(lambda: list(read_rows(path, format="hf")))
    ours = _outcome(
        lambda: [found.row for found in line_rows(path, skip_bad=False) if isinstance(found, ReadRow)]
    )
    assert ours == theirs


def test_messages_that_were_parsed_on_the_way_are_the_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(line("a") + "\n")
    (found,) = line_rows(path, skip_bad=False)
    assert isinstance(found, ReadRow)
    assert found.messages == json.loads(found.row.messages)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(records=st.lists(RECORD, min_size=1, max_size=5), bom=st.booleans())
def test_where_messages_are_said_to_stand_they_stand(
    tmp_path: Path, records: list[dict[str, Any]], bom: bool
) -> None:
    path = tmp_path / "a.jsonl"
    whole = b"\n\n".join(compact(record) for record in records)
    path.write_bytes(b"\xef\xbb\xbf" * bom + whole)
    for found in line_rows(path, skip_bad=True):
        if isinstance(found, ReadRow) and found.place is not None:
            assert found.place.file == 0
            held = path.read_bytes()[found.place.offset :][: found.place.length]
            assert held.decode() == found.row.messages


@pytest.mark.parametrize(
    ("text", "stands"),
    [
        ('{"id":1,"messages":[%s]}', True),
        ('{"id":"\\"messages\\":[]","messages":[%s],"n":2}', True),
        ('{"messages": [%s]}', False),
        ('{"messages":[ %s]}', False),
        ('{"messages":[],"messages":[%s]}', False),
    ],
)
def test_messages_stand_in_a_line_that_holds_them_as_a_row_does(
    tmp_path: Path, text: str, stands: bool
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(text % '{"role":"user","content":"é\\n"}' + "\n")
    (found,) = line_rows(path, skip_bad=False)
    assert isinstance(found, ReadRow)
    assert found.row.messages == '[{"role":"user","content":"é\\n"}]'
    assert (found.place is not None) is stands


def test_lines_longer_than_the_buffer_are_found_at_their_place(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    sizes = (10, 3 << 20, 20, 9 << 20, 30)
    records = [{"messages": [{"role": "user", "content": "x" * size}]} for size in sizes]
    path.write_bytes(b"".join(compact(record) + b"\n" for record in records))
    found = [row for row in line_rows(path, skip_bad=False) if isinstance(row, ReadRow) and row.place]
    whole = path.read_bytes()
    assert [len(row.row.messages) - 30 for row in found] == list(sizes)
    for row in found:
        assert row.place is not None
        assert whole[row.place.offset :].startswith(row.row.messages.encode())


def compact(record: dict[str, Any]) -> bytes:
    """A line as fast writers of JSON make it."""
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode()


def _outcome(read: Any) -> Any:
    try:
        return read()
    except DatasetCorrupt as error:
        return error.message, error.row, error.field
