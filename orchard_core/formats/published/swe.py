"""The published part `swe`: columns `tools`, `messages` and `metadata`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchard_core.errors import FormatUnsupported
from orchard_core.formats.columns import need_pyarrow
from orchard_core.formats.conversation import Fields, conversation
from orchard_core.formats.fault import Fault
from orchard_core.formats.imported import tool_texts
from orchard_core.formats.published.beside import put_back, take_out
from orchard_core.formats.published.card import card
from orchard_core.formats.published.columns import SWE, is_swe
from orchard_core.formats.published.row import published_row, read_metadata, told_metadata
from orchard_core.formats.records import Found, first_record, read_rows_of
from orchard_core.formats.sheets import Layout, write_table
from orchard_core.formats.text import a_text, dumped, parsed
from orchard_core.types.dataset import DatasetRow

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

NAME = "orchard-swe"
_MEMBERS = ("role", "content", "tool_call_id", "tool_calls")
OURS = ("verify_status", "task_id")
"""Published members that rows of ours have."""


class SweFormat:
    """JSON lines and Parquet; a directory is laid out as the published one."""

    name = NAME
    writes = True

    def recognises(self, path: Path) -> bool:
        """By its first row's columns."""
        first = first_record(path)
        return first is not None and is_swe(first)

    def read(self, path: Path) -> Iterator[DatasetRow]:
        """Raises DatasetNotFound and DatasetCorrupt."""
        return read_rows_of(path, _row)

    def write(self, rows: Iterable[DatasetRow], path: Path) -> int:
        """Raises DatasetExists and FormatUnsupported."""
        layout = Layout(
            records=_records, schema=_schema, split_file="swe/{split}/0000.parquet", card=partial(card, "swe")
        )
        return write_table(rows, path, layout)


def _row(found: Found) -> DatasetRow:
    fields = found.fields
    for name in SWE:
        if name not in fields:
            raise Fault("there is no such column", field=name)
    theirs, ours, beside, text = read_metadata(a_text(fields["metadata"], "metadata"), OURS)
    plain = conversation(fields["messages"], filled=found.filled).messages
    tools = fields["tools"]
    return published_row(
        put_back(plain, beside, ()),
        tools=tool_texts(tools, filled=found.filled),
        place=found.place,
        ours=ours,
        note=NAME,
        kept={**text, **({"tools": tools} if isinstance(tools, str) and ours is None else {})},
        split=found.split,
        **_theirs(theirs),
    )


_PASSED = frozenset({"passed", "pass", "success", "succeeded", "resolved", "true"})
_FAILED = frozenset({"failed", "fail", "failure", "unresolved", "false"})


def _theirs(theirs: Fields) -> Fields:
    """What the published metadata says of a row, as far as its values are known."""
    known: Fields = {}
    word = str(theirs.get("verify_status", "")).lower()
    if word in _PASSED | _FAILED:
        known["reward"] = 1.0 if word in _PASSED else 0.0
    for name in ("instance_id", "task_id"):
        if isinstance(theirs.get(name), str):
            known.setdefault("task", theirs[name])
    return known


def _records(row: DatasetRow, parquet: bool) -> Iterator[dict[str, Any]]:
    taken = take_out(parsed(row.messages), _MEMBERS)
    if taken.images:
        raise FormatUnsupported(
            f"row {row.id} holds pictures, for which the published swe columns have no place",
            hint="write orchard-gui or hf",
        )
    for place, message in enumerate(taken.messages):
        calls = message.get("tool_calls") or []
        rest = [{key: value for key, value in call.items() if key not in _CALL} for call in calls]
        if any(rest):
            taken.beside.setdefault(str(place), {}).setdefault("members", {})["tool_calls"] = calls
        message["tool_calls"] = [{key: call.get(key) for key in _CALL} for call in calls] or None
    given = row.metadata.get(NAME)
    note = given if isinstance(given, dict) else {}
    again = published_row(
        parsed(row.messages), tools=row.tools, place="", ours=None, note=NAME, kept={},
        **_theirs(parsed(str(note.get("metadata", "{}")))),
    )  # fmt: skip
    yield {
        "tools": _tools(row, note),
        "messages": taken.messages,
        "metadata": told_metadata(row, NAME, _fresh(row), again, taken.told),
    }


_CALL = ("id", "type", "function")


def _tools(row: DatasetRow, note: Fields) -> str:
    """The text that the file had, where it still says the same."""
    given = note.get("tools")
    if isinstance(given, str) and given and dumped(parsed(given)) == row.tools:
        return given
    return row.tools


def _fresh(row: DatasetRow) -> Fields:
    """Published members of a row of ours."""
    status = None if row.reward is None else "passed" if row.reward >= 1 else "failed"
    return {"verify_status": status, "task_id": row.task}


def _schema() -> pa.Schema:
    """As the published files have it."""
    arrow = need_pyarrow()
    text = arrow.string()
    function = arrow.struct([("name", text), ("arguments", text)])
    call = arrow.struct([("id", text), ("type", text), ("function", function)])
    message = arrow.struct(
        [("role", text), ("content", text), ("tool_call_id", text), ("tool_calls", arrow.list_(call))]
    )
    return arrow.schema([("tools", text), ("messages", arrow.list_(message)), ("metadata", text)])
