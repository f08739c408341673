"""Writing table files: one, or a directory with one a split."""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

import zstandard

from orchard_core.errors import FormatUnsupported
from orchard_core.formats.columns import ParquetSheet
from orchard_core.formats.place import new_directory, new_file
from orchard_core.formats.text import dumped
from orchard_core.types.dataset import DatasetRow

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

_SPLIT = re.compile(r"\w[\w.-]{0,63}", re.ASCII)
_MOST_SPLITS = 64
KINDS = (".parquet", ".jsonl", ".jsonl.gz", ".jsonl.zst")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How rows become records, and records files."""

    records: Callable[[DatasetRow, bool], Iterable[dict[str, Any]]]
    """The records of a row; the flag: for Parquet. Raises FormatUnsupported."""
    schema: Callable[[], pa.Schema]
    """The Parquet schema."""
    split_file: str
    """Where a split's file lies in a directory, such as `{split}.jsonl`."""
    card: Callable[[Iterable[str], str], str] | None = None
    """Text of a directory's README.md, by its splits and a hash of its files."""


class Sheet(Protocol):
    """A file being written."""

    def add(self, record: dict[str, Any], size: int) -> None:
        """One more row."""


def write_table(rows: Iterable[DatasetRow], path: Path, layout: Layout) -> int:
    """Write rows to one file whose ending is known, else to a directory. Gives the number of rows."""
    if path.name.endswith(KINDS):
        with new_file(path) as file, _sheet(file, path.name, layout) as sheet:
            return _written(rows, lambda row: sheet, layout, parquet=path.name.endswith(".parquet"))
    with new_directory(path) as folder:
        count, splits = _write_folder(rows, folder, layout)
        if layout.card is not None:
            text = layout.card(splits, _content(folder, splits, layout))
            (folder / "README.md").write_text(text, encoding="utf-8")
        return count


def _write_folder(rows: Iterable[DatasetRow], folder: Path, layout: Layout) -> tuple[int, list[str]]:
    open_sheets: dict[str, Sheet] = {}
    with ExitStack() as stack:

        def of_split(row: DatasetRow) -> Sheet:
            split = row.split or "train"
            if split not in open_sheets:
                open_sheets[split] = stack.enter_context(_in_folder(folder, split, layout, len(open_sheets)))
            return open_sheets[split]

        count = _written(rows, of_split, layout, parquet=layout.split_file.endswith(".parquet"))
        if (
            not open_sheets
        ):  # a directory without a file says nothing, one with an empty file that it is empty
            open_sheets["train"] = stack.enter_context(_in_folder(folder, "train", layout, 0))
    return count, list(open_sheets)


def _content(folder: Path, splits: Iterable[str], layout: Layout) -> str:
    whole = hashlib.sha256()
    for split in splits:
        with (folder / layout.split_file.format(split=split)).open("rb") as file:
            whole.update(hashlib.file_digest(file, "sha256").digest())
    return whole.hexdigest()[:16]


def _written(
    rows: Iterable[DatasetRow], sheet_of: Callable[[DatasetRow], Sheet], layout: Layout, *, parquet: bool
) -> int:
    count = 0
    for row in rows:
        for record in layout.records(row, parquet):
            sheet_of(row).add(record, len(row.messages) + len(row.tools) + 1000)
        count += 1
    return count


@contextmanager
def _in_folder(folder: Path, split: str, layout: Layout, number: int) -> Iterator[Sheet]:
    if number >= _MOST_SPLITS or not _SPLIT.fullmatch(split):
        raise FormatUnsupported(
            f"{split[:80]!r} cannot be a split's file name, or there are more than {_MOST_SPLITS} splits",
            hint="write to one file, such as rows.jsonl, or name the splits anew",
        )
    path = folder / layout.split_file.format(split=split)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file, _sheet(file, path.name, layout) as sheet:
        yield sheet


@contextmanager
def _sheet(file: BinaryIO, name: str, layout: Layout) -> Iterator[Sheet]:
    if name.endswith(".parquet"):
        with ParquetSheet(file, layout.schema()) as parquet:
            yield parquet
        return
    with packed(file, name) as opened:
        yield _Lines(opened)


@contextmanager
def packed(file: BinaryIO, name: str) -> Iterator[Any]:
    """The file, packed as its name says."""
    if name.endswith(".gz"):
        with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as opened:
            yield opened
    elif name.endswith(".zst"):
        with zstandard.ZstdCompressor(write_checksum=True).stream_writer(file, closefd=False) as opened_zst:
            yield opened_zst
    else:
        yield file


class _Lines:
    def __init__(self, file: Any) -> None:
        self._file = file

    def add(self, record: dict[str, Any], size: int) -> None:
        self._file.write(dumped(record).encode("utf-8", "surrogatepass") + b"\n")
