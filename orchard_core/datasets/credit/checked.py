"""Files of records, a line each, that end in a checksum of what stands before it.

A line is `{...,"crc":"xxxxxxxx"}`: plain JSON for any reader, with CRC-32 over the bytes before `,"crc"`.
Bad lines with nothing valid after them are a torn tail, which was never reported and may be cut; a bad line
before a valid one is damage.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from orchard_core.errors import DatasetCorrupt, DatasetError
from orchard_core.rollout.store.files import Appender, Files
from orchard_core.rollout.text import storable_tree
from orchard_core.types.base import Record

R = TypeVar("R", bound=Record)
_TAIL = len(b',"crc":"00000000"}')
_VERSION = re.compile(rb'\{"schema_version":(\d{1,9}),')


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a line lies."""

    row: int
    """Which line, from 0."""
    offset: int
    """Its first byte."""
    length: int
    """Its bytes, the newline left out."""

    @property
    def end(self) -> int:
        """The first byte behind it and its newline."""
        return self.offset + self.length + 1


def encode(record: Record) -> bytes:
    """The line of a record, newline included."""
    try:
        body = record.model_dump_json().encode()[:-1]
    except ValueError:  # a lone surrogate: pydantic's serialisation error is a ValueError
        clean = type(record).model_validate(storable_tree(record.model_dump()))
        body = clean.model_dump_json().encode()[:-1]
    return b'%s,"crc":"%08x"}\n' % (body, zlib.crc32(body))


def decode(line: bytes, kind: type[R], *, path: Path, row: int) -> R:
    """The record of a whole line, its newline left out. Raises DatasetCorrupt naming the field."""
    if not _is_whole(line):
        raise corrupt("the checksum does not match", path, row)
    try:
        return kind.model_validate_json(line[:-_TAIL] + b"}")
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise corrupt(first["msg"], path, row, ".".join(map(str, first["loc"]))) from None


def scan(path: Path, *, newest: int) -> Iterator[tuple[bytes, Place]]:
    """Every whole line, its newline left out, in order, up to a torn tail; none when there is no file.

    Raises DatasetCorrupt for a bad line before a valid one, DatasetError for one of a version above `newest`.
    """
    if not path.exists():
        return
    offset, bad = 0, -1
    with path.open("rb") as stream:
        for row, line in enumerate(stream):
            if not (line.endswith(b"\n") and _is_whole(line[:-1])):
                bad = row if bad < 0 else bad
            elif bad >= 0:
                raise corrupt("the line is damaged", path, bad)
            else:
                _check_version(line, newest, path, row)
                yield line[:-1], Place(row=row, offset=offset, length=len(line) - 1)
            offset += len(line)


def append_after(end: int, path: Path, files: Files) -> Appender:
    """The file, opened for more lines once what stands behind `end` is cut off."""
    lines = files.append(path)
    files.sync_dir(path.parent)
    if lines.size > end:
        lines.truncate(end)
        lines.sync()
    return lines


def corrupt(what: str, path: Path, row: int, field: str = "") -> DatasetCorrupt:
    """The error for a line."""
    return DatasetCorrupt(
        what, path=str(path), row=row, field=field, hint="restore it from a copy, or assign credit anew"
    )


def _is_whole(line: bytes) -> bool:
    return line[-_TAIL:] == b',"crc":"%08x"}' % zlib.crc32(line[:-_TAIL])


def _check_version(line: bytes, newest: int, path: Path, row: int) -> None:
    found = _VERSION.match(line)
    if found is not None and int(found[1]) > newest:
        raise DatasetError(
            f"{path}, row {row}: written by a newer Orchard (this one reads version {newest})",
            hint="pip install --upgrade orchard-core",
        )
