"""One shard that is read: checked against the manifest before, and a row group at a time."""

from __future__ import annotations

import stat
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from orchard_core.datasets.store.arrow import FAULTS, pq
from orchard_core.datasets.store.manifest import Shard
from orchard_core.datasets.store.schema import ORDER, SCHEMA, VERSION_KEY
from orchard_core.datasets.store.unpack import HINT, unpack
from orchard_core.errors import DatasetCorrupt
from orchard_core.types.dataset import DATASET_VERSION, DatasetRow

UNREADABLE = (*FAULTS, ValueError, TypeError)


class ShardReader:
    """Opens the file and holds it against the manifest. Raises DatasetCorrupt, as all of its methods do."""

    def __init__(self, root: Path, shard: Shard) -> None:
        self.shard = shard
        """What the manifest says of it."""
        self.path = root / shard.file
        """The file."""
        self._file = self._opened()
        groups = self._file.metadata
        self._ends = list(accumulate(groups.row_group(at).num_rows for at in range(groups.num_row_groups)))
        self._held: tuple[int, Any] | None = None

    def tables(self, columns: Sequence[str] | None = None) -> Iterator[tuple[int, Any]]:
        """Each row group as a table, with the place of its first row in the file."""
        for group in range(self.groups):
            yield self.table(group, columns)

    @property
    def groups(self) -> int:
        """How many row groups there are."""
        return len(self._ends)

    def table(self, group: int, columns: Sequence[str] | None = None) -> tuple[int, Any]:
        """One of them as a table, with the place of its first row in the file."""
        return self._first(group), self._read(group, columns)

    def row(self, place: int) -> DatasetRow:
        """One row by its place in the file."""
        group = bisect_right(self._ends, place)
        if self._held is None or self._held[0] != group:
            self._held = (group, self._read(group, None))
        table = self._held[1].slice(place - self._first(group), 1)
        return next(unpack(table, path=str(self.path), first=place))

    def _first(self, group: int) -> int:
        return self._ends[group - 1] if group else 0

    def _read(self, group: int, columns: Sequence[str] | None) -> Any:
        try:
            return self._file.read_row_group(group, columns=columns)
        except UNREADABLE as error:
            field = self._unreadable(group, columns or ORDER)
            raise DatasetCorrupt(
                f"the rows from here to {self._ends[group] - 1} cannot be read: {_words(error)}",
                path=str(self.path), row=self._first(group), field=field, hint=HINT,
            ) from error  # fmt: skip

    def _unreadable(self, group: int, columns: Sequence[str]) -> str:
        """The first column that cannot be read."""
        for name in columns:
            try:
                self._file.read_row_group(group, columns=[name])
            except UNREADABLE:
                return name
        return ""

    def _opened(self) -> Any:
        try:
            told = self.path.stat()
        except OSError as error:
            raise self._fault(f"cannot be read: {error.strerror}") from error
        if not stat.S_ISREG(told.st_mode):
            raise self._fault("is no file")
        size = told.st_size
        if size != self.shard.bytes:
            what = "cut short" if size < self.shard.bytes else "longer than it was"
            raise self._fault(f"{what}: {size} bytes, and the manifest says {self.shard.bytes}")
        return self.parquet()

    def parquet(self) -> Any:
        """The file as Arrow sees it, with the columns of a dataset and the manifest's number of rows."""
        try:
            opened = pq.ParquetFile(self.path, page_checksum_verification=True)
            schema = opened.schema_arrow
        except UNREADABLE as error:
            raise self._fault(f"is no Parquet file, or a damaged one: {_words(error)}") from error
        self._check_columns(schema)
        if opened.metadata.num_rows != self.shard.rows:
            raise self._fault(
                f"holds {opened.metadata.num_rows} rows, and the manifest says {self.shard.rows}"
            )
        return opened

    def _check_columns(self, schema: Any) -> None:
        version = (schema.metadata or {}).get(VERSION_KEY, b"")
        if not version.isdigit():
            raise self._fault("was not written by Orchard", hint="orchard data import reads other formats")
        if int(version) > DATASET_VERSION:
            raise self._fault(
                f"was written by a newer Orchard (version {int(version)}; this one reads {DATASET_VERSION})",
                hint="pip install --upgrade orchard-core",
            )
        found = {field.name: field.type for field in schema}
        for field in SCHEMA:
            if found.get(field.name) != field.type:
                have = found.get(field.name, "nothing")
                raise self._fault(f"there must be {field.type} here, and there is {have}", field=field.name)
        extra = sorted(found.keys() - set(ORDER))
        if extra:
            raise self._fault("a dataset has no such column", field=extra[0])

    def _fault(self, message: str, *, field: str = "", hint: str = HINT) -> DatasetCorrupt:
        if field:
            return DatasetCorrupt(f"column {field}: {message}", path=str(self.path), field=field, hint=hint)
        return DatasetCorrupt(message, path=str(self.path), hint=hint)


def _words(error: BaseException) -> str:
    return str(error)[:200] or type(error).__name__
