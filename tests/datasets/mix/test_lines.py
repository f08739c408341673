"""The quick way through JSON lines gives what the format itself gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

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


def _outcome(read: Any) -> Any:
    try:
        return read()
    except DatasetCorrupt as error:
        return error.message, error.row, error.field
