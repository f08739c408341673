"""The lines of `credits.jsonl`: one Credit each, with a checksum of what stands before it.

A line is `{...,"crc":"xxxxxxxx"}`: plain JSON for any reader, with CRC-32 over the bytes before `,"crc"`.
Bad lines with nothing valid after them are a torn tail, which was never reported and may be cut; a bad line
before a valid one is damage.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from orchard_core.datasets.credit.sound import fault_of
from orchard_core.errors import DatasetCorrupt, DatasetError
from orchard_core.rollout.text import storable_tree
from orchard_core.types.credit import CREDIT_VERSION, Credit

_TAIL = len(b',"crc":"00000000"}')
_HEAD = re.compile(rb'\{"schema_version":(\d{1,9}),"rollout":("(?:[^"\\]|\\.)*")')


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a line lies."""

    row: int
    """Which line, from 0."""
    offset: int
    """Its first byte."""
    length: int
    """Its bytes, the newline left out."""


def encode(credit: Credit) -> bytes:
    """The line of a credit, newline included."""
    try:
        body = credit.model_dump_json().encode()[:-1]
    except ValueError:  # a lone surrogate: pydantic's serialisation error is a ValueError
        clean = Credit.model_validate(storable_tree(credit.model_dump()))
        body = clean.model_dump_json().encode()[:-1]
    return b'%s,"crc":"%08x"}\n' % (body, zlib.crc32(body))


def is_whole(line: bytes) -> bool:
    """Whether a line, its newline left out, is as it was written."""
    return line[-_TAIL:] == b',"crc":"%08x"}' % zlib.crc32(line[:-_TAIL])


def decode(line: bytes, *, path: Path, row: int) -> Credit:
    """The credit of a whole line. Raises DatasetCorrupt naming the field."""
    if not is_whole(line):
        raise _corrupt("the checksum does not match", path, row)
    try:
        credit = Credit.model_validate_json(line[:-_TAIL] + b"}")
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise _corrupt(first["msg"], path, row, ".".join(map(str, first["loc"]))) from None
    if fault := fault_of(credit):
        raise _corrupt(fault.what, path, row, fault.field)
    return credit


def scan(path: Path) -> Iterator[tuple[str, Place]]:
    """Rollout and place of every whole line, in order, up to a torn tail; no credit is made.

    Raises DatasetCorrupt for a bad line before a valid one, and DatasetError for one of a newer Orchard.
    """
    offset, bad = 0, -1
    with path.open("rb") as stream:
        for row, line in enumerate(stream):
            if not (line.endswith(b"\n") and is_whole(line[:-1])):
                bad = row if bad < 0 else bad
            elif bad >= 0:
                raise _corrupt("the line is damaged", path, bad)
            else:
                yield _rollout(line, path, row), Place(row=row, offset=offset, length=len(line) - 1)
            offset += len(line)


def _rollout(line: bytes, path: Path, row: int) -> str:
    found = _HEAD.match(line)
    if found is None:
        raise _corrupt("not a credit", path, row)
    if int(found[1]) > CREDIT_VERSION:
        raise DatasetError(
            f"{path}, row {row}: written by a newer Orchard (this one reads version {CREDIT_VERSION})",
            hint="pip install --upgrade orchard-core",
        )
    try:
        return str(json.loads(found[2]))
    except ValueError:  # not UTF-8, or an escape that is none
        raise _corrupt("not text", path, row, "rollout") from None


def _corrupt(what: str, path: Path, row: int, field: str = "") -> DatasetCorrupt:
    return DatasetCorrupt(
        what, path=str(path), row=row, field=field, hint="restore it from a copy, or assign credit anew"
    )
