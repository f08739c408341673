"""JSON lines of the `hf` format, read a line at a time: the way most rows come, so it is to cost little.

Nothing is decided here: a line that is plainly in a row's shape is parsed once, for the row and for the
filters; any other goes the format's own way. Where bad rows are skipped, only their own line is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from orchard_core.errors import DatasetCorrupt
from orchard_core.formats.conversation import Conversation, is_plain
from orchard_core.formats.fault import Fault
from orchard_core.formats.hf.reading import hf_row
from orchard_core.formats.limits import MIB, ROW_BYTES
from orchard_core.formats.records import Found, split_of, table_files
from orchard_core.formats.text import parsed_object
from orchard_core.formats.unpacked import head
from orchard_core.types.dataset import DatasetRow

_BOM = b"\xef\xbb\xbf"
_BUFFER = 1 << 20


class ReadRow(NamedTuple):
    """A row, and its messages where they were parsed on the way."""

    row: DatasetRow
    """The row."""
    messages: Sequence[dict[str, Any]] | None
    """What `row.messages` says; None: not parsed yet."""


class BadRow(NamedTuple):
    """What cannot be read."""

    id: str
    """Where it stands."""
    why: str
    """What is wrong with it."""


def is_lines(path: Path) -> bool:
    """Whether every file there is plain JSON lines, nothing packed."""
    files = table_files(path)
    return bool(files) and all(head(file, 64).lstrip(_BOM + b" \t\r\n")[:1] == b"{" for file in files)


def line_rows(path: Path, *, skip_bad: bool) -> Iterator[ReadRow | BadRow]:
    """Every row of a file, or of the files of a directory. Raises DatasetCorrupt naming file, row and field,
    unless `skip_bad`, and OSError."""
    root = path if path.is_dir() else path.parent
    for file in table_files(path):
        split = split_of(file.relative_to(root)) if path.is_dir() else ""
        for number, line in enumerate(_lines(file)):
            try:
                yield _row(line, f"{file.relative_to(root)}:{number}", split)
            except Fault as fault:
                error = fault.at(str(file), number)
                if not skip_bad:
                    raise error from None
                yield BadRow(f"{file.relative_to(root)}:{number}", error.message)


def _lines(path: Path) -> Iterator[bytes]:
    """Lines that are not blank. Raises DatasetCorrupt for one that is too long to be a row."""
    with path.open("rb", buffering=_BUFFER) as file:
        number = 0
        while line := file.readline(ROW_BYTES + 1):
            if len(line) > ROW_BYTES:
                raise DatasetCorrupt(
                    f"this row has more than {ROW_BYTES // MIB} MiB", path=str(path), row=number,
                    hint="take it out of the file",
                )  # fmt: skip
            line = (line.removeprefix(_BOM) if number == 0 else line).strip(b" \t\r\n")
            if line:
                yield line
                number += 1


def _row(line: bytes, place: str, split: str) -> ReadRow:
    fields = _plain(line)
    if fields is not None:
        messages = fields["messages"]
        found = Found(fields=fields, filled=False, place=place, split=split)
        return ReadRow(hf_row(found, Conversation(messages=messages)), messages)
    return ReadRow(hf_row(Found(fields=parsed_object(line), filled=False, place=place, split=split)), None)


def _plain(line: bytes) -> dict[str, Any] | None:
    """The line's members where the fast parser reads them as the format would, and `messages` is in a row's
    shape; numbers with a point may be integers too long for it."""
    try:
        fields = orjson.loads(line)
    except ValueError:
        return None
    if type(fields) is not dict or type(fields.get("messages")) is not list:
        return None
    for name, value in fields.items():
        if name != "messages" and value is not None and type(value) not in _SAFE:
            return None
    return fields if is_plain(fields["messages"]) else None


_SAFE = frozenset({str, int, bool})
