"""Writing a dataset row by row. Memory holds one row group of each split."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orchard_core
from orchard_core.datasets.store.arrays import elements, view
from orchard_core.datasets.store.arrow import FAULTS, np
from orchard_core.datasets.store.card import card
from orchard_core.datasets.store.manifest import Made, Manifest, Shard, SplitTotals
from orchard_core.datasets.store.pack import largest, pack, weight
from orchard_core.datasets.store.partial import Partial, Whole
from orchard_core.datasets.store.schema import SCHEMA
from orchard_core.datasets.store.shard import ShardFile
from orchard_core.errors import ConfigError, FormatUnsupported, StoreError
from orchard_core.types.dataset import DatasetRow

DEFAULT_SPLIT = "train"
"""Where rows go that belong to none."""
_SPLIT = re.compile(r"[A-Za-z0-9_]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardLimits:
    """When a shard or a row group is full: as soon as one of its limits is reached."""

    shard_bytes: int = 256 << 20
    """Bytes of a shard's file."""
    shard_rows: int = 1 << 20
    """Rows of a shard."""
    group_bytes: int = 8 << 20
    """Bytes of a row group before compression: what reading one row costs."""
    group_rows: int = 1024
    """Rows of a row group."""
    row_bytes: int = (1 << 31) - 1
    """Bytes of one row; never more, for the offsets of a column have 32 bits."""


@dataclass(slots=True, kw_only=True)
class _Open:
    """A split that is being written."""

    rows: list[DatasetRow] = field(default_factory=list)
    weight: int = 0
    shard: ShardFile | None = None
    tokens: int = 0
    turns: int = 0
    trained: int = 0


class DatasetWriter:
    """Writes into a directory that holds no dataset yet; used as a context, or finished and closed.

    The dataset is there once its block ends, or `finish` returns. A block that an error leaves, `close`, and
    a writer that dies make none, and keep the whole shards: with `resume` and the same `plan` a new one goes
    on after them. `durable` then says how many rows of each split are there: the caller gives its rows in
    the same order and leaves so many of each split out.

    Raises DatasetExists, DatasetLocked, ConfigError, and StoreError when the disk fails.
    """

    def __init__(
        self, out: str | Path, *, limits: ShardLimits | None = None, plan: str = "", resume: bool = False
    ) -> None:
        self.root = Path(out)
        """The dataset's directory."""
        self._limits = limits or ShardLimits()
        self._fault: StoreError | None = None
        with self._disk():
            self._partial: Partial | None = Partial.open(self.root, plan=plan, resume=resume)
        self._splits: dict[str, _Open] = {}

    @property
    def durable(self) -> Mapping[str, int]:
        """Rows of each split that survive anything."""
        counts: dict[str, int] = defaultdict(int)
        for shard in self._held.state.shards:
            counts[shard.split] += shard.rows
        return dict(counts)

    def write(self, row: DatasetRow) -> None:
        """Add a row to its split, or to `train`. Raises FormatUnsupported naming what does not fit."""
        size = weight(row)
        if size > self._limits.row_bytes:
            raise FormatUnsupported(
                f"row {row.id[:80]!r}, field {largest(row)}: the row takes {size:,} bytes, and a dataset "
                f"holds rows of up to {self._limits.row_bytes:,}",
                hint="leave the row out",
            )
        split = self._split(row.split)
        if split.weight + size > self._limits.row_bytes:
            self._flush(row.split or DEFAULT_SPLIT, split)
        split.rows.append(row)
        split.weight += size
        if split.weight >= self._limits.group_bytes or len(split.rows) >= self._limits.group_rows:
            self._flush(row.split or DEFAULT_SPLIT, split)

    def write_table(self, table: Any, *, split: str = DEFAULT_SPLIT) -> None:
        """Add a `pyarrow.Table` of `schema.SCHEMA` as one row group of a split, without making rows of it.
        Its column `split` must say the same."""
        if table.schema != SCHEMA:
            raise FormatUnsupported(
                "the table's columns are not those of a dataset", hint="see store/schema.py"
            )
        held = self._split(split)
        self._flush(split, held)
        self._put(split, held, table)

    @property
    def shards(self) -> tuple[Whole, ...]:
        """Those that survive anything, in order."""
        return self._held.state.shards

    def shard_path(self, split: str, number: int) -> Path:
        """Where somebody else, such as another process, may write the shard that `adopt` then takes."""
        return self._held.path(f"{split}-{number:05d}.parquet")

    def adopt(self, shard: Whole) -> None:
        """Take a shard that was committed at `shard_path`; each split's in the order of their numbers."""
        with self._disk():
            self._held.add(shard)

    def finish(self, made: Made | None = None) -> Manifest:
        """Write what is held; the dataset is there when this returns. Once only: what it was `made` by is
        written with it."""
        partial = self._held
        with self._disk():
            if not self._splits and not partial.state.shards:
                self._put(DEFAULT_SPLIT, self._split(""), SCHEMA.empty_table())
            for name, split in self._splits.items():
                self._flush(name, split)
                self._commit(name, split)
            manifest, names = _manifest(partial.state.shards, made or Made())
            partial.publish(names, card(manifest), manifest.model_dump_json(indent=2).encode())
        self._partial = None
        return manifest

    def close(self) -> None:
        """Leave what is not whole, and make no dataset; repeated calls are fine, and so is one after
        `finish`."""
        partial, self._partial = self._partial, None
        if partial is None:
            return
        for split in self._splits.values():
            if split.shard is not None:
                split.shard.drop()
        partial.leave()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None and self._partial is not None:
                self.finish()
        finally:
            self.close()

    @property
    def _held(self) -> Partial:
        if self._fault is not None:
            raise self._fault  # rows are lost: what came after them would be a dataset without them
        if self._partial is None:
            raise ConfigError(f"the writer of {self.root} is closed", hint="open another one")
        return self._partial

    @contextmanager
    def _disk(self) -> Iterator[None]:
        """Around writing: what the disk refuses is a StoreError, which nothing can follow."""
        try:
            yield
        except FAULTS as error:
            self._fault = StoreError(
                f"{self.root} cannot be written: {str(error)[:300]}",
                hint="mend that and run the command again: it goes on (in Python: resume=True)",
            )
            raise self._fault from error

    def _split(self, name: str) -> _Open:
        name = name or DEFAULT_SPLIT
        _ = self._held  # raises where the writer is closed
        if name not in self._splits:
            if not _SPLIT.fullmatch(name):
                raise FormatUnsupported(
                    f"{name[:80]!r} cannot name a split", hint="letters, digits and underscores, at most 64"
                )
            self._splits[name] = _Open()
        return self._splits[name]

    def _flush(self, name: str, split: _Open) -> None:
        if split.rows:
            table = pack(split.rows)
            split.rows, split.weight = [], 0
            self._put(name, split, table)

    def _put(self, name: str, split: _Open, table: Any) -> None:
        """A row group into the open shard, which is committed when it is full."""
        with self._disk():
            if split.shard is None:
                split.shard = ShardFile(self._held.path(f"{name}-{self._number(name):05d}.parquet"))
            split.shard.write(table)
            _count(split, table)
            if split.shard.bytes >= self._limits.shard_bytes or split.shard.rows >= self._limits.shard_rows:
                self._commit(name, split)

    def _number(self, name: str) -> int:
        return sum(shard.split == name for shard in self._held.state.shards)

    def _commit(self, name: str, split: _Open) -> None:
        shard = split.shard
        if shard is None:
            return
        number = self._number(name)
        digest = shard.commit()
        whole = Whole(
            split=name, number=number, rows=shard.rows, bytes=shard.bytes, sha256=digest,
            tokens=split.tokens, turns=split.turns, trained_turns=split.trained,
        )  # fmt: skip
        split.shard, split.tokens, split.turns, split.trained = None, 0, 0, 0
        self._held.add(whole)


def _count(split: _Open, table: Any) -> None:
    split.tokens += _sum(table, "token_count")
    split.turns += _sum(table, "turns")
    for chunk in table.column("mask").chunks:
        split.trained += int(np.count_nonzero(view(elements(chunk)[0])))


def _sum(table: Any, name: str) -> int:
    return sum(int(view(chunk).sum()) for chunk in table.column(name).chunks)


def _manifest(shards: tuple[Whole, ...], made: Made) -> tuple[Manifest, list[tuple[Whole, str]]]:
    splits: dict[str, list[Whole]] = defaultdict(list)
    for shard in sorted(shards, key=_place):
        splits[shard.split].append(shard)
    names = [(shard, shard.final(len(held))) for held in splits.values() for shard in held]
    totals = {
        split: SplitTotals(
            rows=sum(shard.rows for shard in held),
            tokens=sum(shard.tokens for shard in held),
            turns=sum(shard.turns for shard in held),
            trained_turns=sum(shard.trained_turns for shard in held),
        )
        for split, held in splits.items()
    }
    manifest = Manifest(
        created_at=time.time(),
        orchard=orchard_core.__version__,
        rows=sum(shard.rows for shard in shards),
        splits=totals,
        shards=tuple(
            Shard(file=name, split=shard.split, rows=shard.rows, bytes=shard.bytes, sha256=shard.sha256)
            for shard, name in names
        ),
        made=made,
    )
    return manifest, names


def _place(shard: Whole) -> tuple[bool, str, int]:
    """`train` first, then by name: the same however often the writer was taken up again."""
    return shard.split != DEFAULT_SPLIT, shard.split, shard.number
