"""Reading a dataset: one row group at a time, whatever its size."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from orchard_core.datasets.store.facts import READ, RowFacts, unpack_facts
from orchard_core.datasets.store.file import ShardReader
from orchard_core.datasets.store.manifest import read_manifest
from orchard_core.datasets.store.unpack import unpack
from orchard_core.errors import ConfigError
from orchard_core.types.dataset import DatasetRow


class Dataset:
    """A dataset's directory. Nothing is held but its manifest and, after `row`, one row group."""

    def __init__(self, root: Path) -> None:
        self.root = root
        """The directory."""
        self.manifest = read_manifest(root)
        """What it is made of."""
        self._ends = list(accumulate(shard.rows for shard in self.manifest.shards))
        self._open: ShardReader | None = None

    @property
    def splits(self) -> Sequence[str]:
        """Names of the splits, in order."""
        return tuple(self.manifest.splits)

    def __len__(self) -> int:
        return self.manifest.rows

    def __iter__(self) -> Iterator[DatasetRow]:
        return self.rows()

    def rows(self, split: str | None = None) -> Iterator[DatasetRow]:
        """Every row, or those of one split, in order. Raises ConfigError for a split that is not there,
        DatasetCorrupt naming file, row and field; rows before the fault were given."""
        for shard in self.shards(split):
            for first, table in shard.tables():
                yield from unpack(table, path=str(shard.path), first=first)

    def facts(self, split: str | None = None) -> Iterator[RowFacts]:
        """The same of the small columns alone. Raises as `rows`."""
        for shard in self.shards(split):
            for first, table in shard.tables(READ):
                yield from unpack_facts(table, path=str(shard.path), first=first)

    def tables(self, split: str | None = None, *, columns: Sequence[str] | None = None) -> Iterator[Any]:
        """Row groups as `pyarrow.Table`, of all columns or some: for what needs no rows. Raises as `rows`."""
        for shard in self.shards(split):
            for _, table in shard.tables(columns):
                yield table

    def row(self, index: int) -> DatasetRow:
        """One row by its place in the order of iteration. Raises IndexError, DatasetCorrupt."""
        if not 0 <= index < len(self):
            raise IndexError(f"row {index} of a dataset of {len(self)}")
        number = bisect_right(self._ends, index)
        shard = self.manifest.shards[number]
        if self._open is None or self._open.shard is not shard:
            self._open = ShardReader(self.root, shard)
        return self._open.row(index - (self._ends[number] - shard.rows))

    def shards(self, split: str | None = None) -> Iterator[ShardReader]:
        """Readers of the shards, in order. Raises as `rows`."""
        if split is not None and split not in self.manifest.splits:
            raise ConfigError(f"{self.root} has no split {split!r}", hint=f"it has: {', '.join(self.splits)}")
        for shard in self.manifest.shards:
            if split is None or shard.split == split:
                yield ShardReader(self.root, shard)


def open_dataset(path: str | Path) -> Dataset:
    """Open a dataset's directory to read it. Raises DatasetNotFound, DatasetCorrupt."""
    return Dataset(Path(path))
