"""JSON lines of the `hf` format, read a line at a time: the way most rows come, so it is to cost little.

Nothing is decided here: a line that is plainly in a row's shape is parsed once, for the row and for the
filters; any other goes the format's own way. Where bad rows are skipped, only their own line is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import FileIO
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
_BLANK = b" \t\r\n"
_MESSAGES = b'"messages":'
_BUFFER = 4 << 20


class Place(NamedTuple):
    """Where in a source some bytes stand."""

    file: int
    """Which of the source's files, in the order in which they are read."""
    offset: int
    """Where they begin in it."""
    length: int
    """How many."""


class ReadRow(NamedTuple):
    """A row, and its messages where they were parsed on the way."""

    row: DatasetRow
    """The row."""
    messages: Sequence[dict[str, Any]] | None
    """What `row.messages` says; None: not parsed yet."""
    text: bytes | None = None
    """`row.messages` encoded, where that was at hand."""
    place: Place | None = None
    """Where the same bytes stand in the source; None: nowhere that is known."""


class BadRow(NamedTuple):
    """What cannot be read."""

    id: str
    """Where it stands."""
    why: str
    """What is wrong with it."""


def is_lines(path: Path) -> bool:
    """Whether every file there is plain JSON lines, nothing packed."""
    files = table_files(path)
    return bool(files) and all(head(file, 64).lstrip(_BOM + _BLANK)[:1] == b"{" for file in files)


class _Line(NamedTuple):
    """A line of a file, in the buffer that it was read into."""

    held: bytearray
    """The buffer; what comes next is read into it too."""
    start: int
    """Where the line begins in it."""
    end: int
    """Where it ends, its end left out."""
    offset: int
    """Where it begins in the file, in bytes."""

    @property
    def view(self) -> memoryview:
        return memoryview(self.held)[self.start : self.end]

    def cut(self, count: int) -> _Line:
        """The line without its first bytes."""
        return self._replace(start=self.start + count, offset=self.offset + count)

    def find_messages(self, text: bytes) -> int | None:
        """Where in the file its messages stand, if just so: the bytes of `text`."""
        at = self.held.find(_MESSAGES, self.start, self.end) + len(_MESSAGES)
        found = at > self.start and self.held.startswith(text, at, self.end)
        return self.offset + at - self.start if found else None


def line_rows(path: Path, *, skip_bad: bool) -> Iterator[ReadRow | BadRow]:
    """Every row of a file, or of the files of a directory. Raises DatasetCorrupt naming file, row and field,
    unless `skip_bad`, and OSError."""
    root = path if path.is_dir() else path.parent
    for place, file in enumerate(table_files(path)):
        name = str(file.relative_to(root))
        split = split_of(file.relative_to(root)) if path.is_dir() else ""
        for number, line in enumerate(_lines(file)):
            try:
                yield _row(line, place, f"{name}:{number}", split)
            except Fault as fault:
                error = fault.at(str(file), number)
                if not skip_bad:
                    raise error from None
                yield BadRow(f"{name}:{number}", error.message)


def _lines(path: Path) -> Iterator[_Line]:
    """Lines that are not blank, each to be used before the next one is asked for. Raises DatasetCorrupt for
    one that is too long to be a row."""
    with path.open("rb", buffering=0) as file:
        number = 0
        for line in _split(file):
            if line.end - line.start > ROW_BYTES:
                raise DatasetCorrupt(
                    f"this row has more than {ROW_BYTES // MIB} MiB", path=str(path), row=number,
                    hint="take it out of the file",
                )  # fmt: skip
            told = line.cut(3) if number == 0 and line.view[:3] == _BOM else line
            if bytes(told.view[:64]).strip(_BLANK) or bytes(told.view).strip(_BLANK):
                yield told
                number += 1


def _split(file: FileIO) -> Iterator[_Line]:
    """Lines without their ends, out of one buffer that is used again and again: new memory for each line
    costs more than reading it. One longer than a row may be comes cut."""
    held, start, end, before = bytearray(_BUFFER), 0, 0, 0
    while True:
        stop = held.find(b"\n", start, end)
        if stop >= 0:
            yield _Line(held, start, stop, before + start)
            start = stop + 1
            continue
        if end - start > ROW_BYTES:
            yield _Line(held, start, end, before + start)
            return
        rest = held[start:end]
        if len(rest) > len(held) // 2:
            held = bytearray(2 * len(held))
        held[: len(rest)] = rest
        before += start
        start, end = 0, len(rest)
        count = file.readinto(memoryview(held)[end:])
        if not count:
            yield _Line(held, 0, end, before)
            return
        end += count


def _row(line: _Line, file: int, place: str, split: str) -> ReadRow:
    fields = _plain(line.view)
    if fields is None:
        fields = parsed_object(bytes(line.view))
        return ReadRow(hf_row(Found(fields=fields, filled=False, place=place, split=split)), None)
    messages = fields["messages"]
    text = orjson.dumps(messages)
    told = Conversation(messages=messages, text=text.decode())
    row = hf_row(Found(fields=fields, filled=False, place=place, split=split), told)
    at = line.find_messages(text)
    return ReadRow(row, messages, text, Place(file, at, len(text)) if at is not None else None)


def _plain(line: memoryview) -> dict[str, Any] | None:
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
