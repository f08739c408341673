"""The rows of a table file: JSON lines, packed or not, a JSON array, or Parquet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchard_core.formats.columns import MAGIC, parquet_rows
from orchard_core.formats.fault import Fault
from orchard_core.formats.place import must_exist
from orchard_core.formats.text import a_list, an_object, parsed, parsed_object
from orchard_core.formats.unpacked import head, lines, whole
from orchard_core.types.dataset import DatasetRow

Fields = dict[str, Any]

ENDINGS = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".ndjson", ".json", ".parquet")
"""What the names of table files end with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One row of a file, as values."""

    fields: Fields
    """By column."""
    filled: bool
    """Members may be null because other rows have them (nested Parquet columns)."""
    place: str
    """Where it stands: the file's path below what is read, and the row's number."""
    split: str
    """What the file's name says of the split, or empty."""


def read_rows_of(path: Path, make: Callable[[Found], DatasetRow]) -> Iterator[DatasetRow]:
    """Every row of a file, or of the table files in a directory, in the order of their names. Raises
    DatasetNotFound, and DatasetCorrupt naming file, row and field."""
    must_exist(path)
    root = path if path.is_dir() else path.parent
    for file in table_files(path):
        split = split_of(file.relative_to(root)) if path.is_dir() else ""
        number = 0
        found = records(file)
        try:
            while (record := next(found, None)) is not None:
                fields, filled = record
                place = f"{file.relative_to(root)}:{number}"
                yield make(Found(fields=fields, filled=filled, place=place, split=split))
                number += 1
        except Fault as fault:
            raise fault.at(str(file), number) from None


def records(path: Path) -> Iterator[tuple[Fields, bool]]:
    """Rows as values, and whether they are filled with nulls. Raises Fault and OSError."""
    start = head(path, 64)
    if start.startswith(MAGIC):
        yield from parquet_rows(path)
    elif start.lstrip().startswith(b"["):
        for item in a_list(parsed(whole(path)), ""):
            yield an_object(item, ""), False
    else:
        for line in lines(path):
            yield parsed_object(line), False


def first_record(path: Path) -> Fields | None:
    """The first row of a file or of the first file of a directory, None where there is none to be had."""
    try:
        files = table_files(path)
        if not files or not head(files[0], 64).lstrip()[:1] or head(files[0], 64).lstrip()[:1] not in b"{[P":
            return None
        found = next(records(files[0]), None)
    except (Fault, OSError):
        return None
    return found[0] if found else None


def table_files(path: Path) -> list[Path]:
    """The file itself, or the table files of a directory."""
    if not path.is_dir():
        return [path]
    found = [file for file in path.rglob("*") if file.name.endswith(ENDINGS) and file.is_file()]
    return sorted(
        file for file in found if not any(part.startswith(".") for part in file.relative_to(path).parts)
    )


_SPLITS = ("train", "validation", "test")


def split_of(file: Path) -> str:
    """The split that a path names as `datasets` reads it, such as `data/test-00000-of-00001.parquet`."""
    for part in (file.name, *(parent.name for parent in file.parents)):
        word = part.split(".")[0].split("-")[0]
        if word in _SPLITS:
            return word
    return file.name.split(".")[0].split("-0")[0]
