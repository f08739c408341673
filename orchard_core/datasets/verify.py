"""Whether a dataset is what its manifest says, and every row of it well-formed: all faults, not the first."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from orchard_core.datasets.leaks.check import LeakCheck
from orchard_core.datasets.leaks.report import Leak
from orchard_core.datasets.similar.index import NEAR
from orchard_core.datasets.similar.tasks import TaskKey, TaskText, task_of
from orchard_core.datasets.store.facts import READ, RowFacts, unpack_facts
from orchard_core.datasets.store.file import ShardReader
from orchard_core.datasets.store.manifest import DATA, MANIFEST_NAME, Manifest, Shard, read_manifest
from orchard_core.datasets.store.unpack import unpack, values
from orchard_core.datasets.verify_row import row_faults
from orchard_core.datasets.verify_tasks import Ids, TaskPlaces
from orchard_core.errors import DatasetCorrupt
from orchard_core.types.base import Record
from orchard_core.types.dataset import DatasetRow, task_digest

MOST = 10_000
"""Faults that are listed; beyond them they are counted."""
_BLOCK = 1 << 20
_COLUMNS = (*READ, "provenance")


class Fault(Record):
    """One thing that is wrong."""

    file: str
    """The file, as the dataset's directory has it."""
    row: int | None = None
    """Place of the row in that file, from 0; None: the fault is the file's."""
    field: str = ""
    """The field or the part of it, such as `messages[3].role`; empty: the whole row or file."""
    message: str
    """What is wrong."""


class Verified(Record):
    """What was found."""

    path: str
    """The dataset."""
    deep: bool
    """Every message and every token id was read."""
    shards: int
    """Files that were looked at."""
    rows: int
    """Rows that were looked at."""
    faults: tuple[Fault, ...] = ()
    """In the order of files and rows, at most MOST."""
    more: int = 0
    """Faults beyond those."""

    @property
    def sound(self) -> bool:
        """Nothing is wrong."""
        return not self.faults


class Verifier:
    """Reads a dataset once, a row group at a time. Take all of `rows`, then ask for `report`.

    Without `deep` it holds files against their hashes and the manifest, columns against the schema, and looks
    at the small columns: ids, tasks, splits, counts. With it, every row is read whole and looked at by
    `row_faults`. `leaks` are benchmarks whose tasks must not be among the rows.
    """

    def __init__(self, root: Path, *, deep: bool = False, leaks: LeakCheck | None = None) -> None:
        self.root = root
        """The dataset's directory."""
        self._deep = deep
        self._leaks = leaks
        self._leaking: dict[tuple[TaskKey, int], str] = {}
        self._faults: list[Fault] = []
        self._more = 0
        self._rows = 0
        self._shards = 0
        self._ids = Ids()
        self._tasks = TaskPlaces()
        self._sums: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(_TOTALS, 0))

    def rows(self) -> Iterator[RowFacts | DatasetRow]:
        """Every row that can be read, while it is looked at. Raises DatasetNotFound where no manifest is."""
        try:
            manifest = read_manifest(self.root)
        except DatasetCorrupt as error:
            self._say(MANIFEST_NAME, None, error.field, _bare(error))
            return
        for shard in manifest.shards:
            self._shards += 1
            yield from self._shard(shard)
        self._strays(manifest)
        self._totals(manifest)
        self._together(manifest)

    def report(self) -> Verified:
        """What was found so far."""
        return Verified(
            path=str(self.root), deep=self._deep, shards=self._shards, rows=self._rows,
            faults=tuple(self._faults), more=self._more,
        )  # fmt: skip

    def _say(self, file: str, row: int | None, field: str, message: str) -> None:
        if len(self._faults) >= MOST:
            self._more += 1
        else:
            self._faults.append(Fault(file=file, row=row, field=field, message=message))

    def _caught(self, shard: Shard, error: DatasetCorrupt) -> None:
        self._say(shard.file, error.row, error.field, _bare(error))

    def _shard(self, shard: Shard) -> Iterator[RowFacts | DatasetRow]:
        self._hash(shard)
        try:
            reader = ShardReader(self.root, shard)
        except DatasetCorrupt as error:
            self._caught(shard, error)
            return
        for group in range(reader.groups):
            try:
                first, table = reader.table(group, None if self._deep else _COLUMNS)
            except DatasetCorrupt as error:
                self._caught(shard, error)
                continue
            yield from self._table(shard, table, first)

    def _hash(self, shard: Shard) -> None:
        digest = hashlib.sha256()
        if not (self.root / shard.file).is_file():
            return  # said when it is opened
        try:
            with (self.root / shard.file).open("rb") as stream:
                while block := stream.read(_BLOCK):
                    digest.update(block)
        except OSError:
            return  # said when it is opened
        if digest.hexdigest() != shard.sha256:
            self._say(shard.file, None, "", "its hash is not the manifest's: the file was changed")

    def _table(self, shard: Shard, table: Any, first: int) -> Iterator[RowFacts | DatasetRow]:
        try:
            rows = list(self._unpacked(shard, table, first))
        except DatasetCorrupt:  # find out which of the rows
            rows = []
            for place in range(table.num_rows):
                try:
                    rows += self._unpacked(shard, table.slice(place, 1), first + place)
                except DatasetCorrupt as error:
                    self._caught(shard, error)
        for place, row, task in rows:
            self._look(shard, place, row, task)
            yield row

    def _unpacked(
        self, shard: Shard, table: Any, first: int
    ) -> Iterator[tuple[int, RowFacts | DatasetRow, TaskText]]:
        path = str(self.root / shard.file)
        if self._deep:
            for place, row in enumerate(unpack(table, path=path, first=first), first):
                yield place, row, task_of(row)
            return
        told = values("provenance", table, path=path, first=first)
        facts = unpack_facts(table, path=path, first=first)
        for place, (row_facts, provenance) in enumerate(zip(facts, told, strict=True), first):
            task = TaskText(
                taskset=row_facts.taskset, task=row_facts.task, text=row_facts.task_text,
                digest=task_digest(provenance),
            )  # fmt: skip
            yield place, row_facts, task

    def _look(self, shard: Shard, place: int, row: RowFacts | DatasetRow, task: TaskText) -> None:
        self._rows += 1
        self._ids.add(row.id)
        self._tasks.add(task, split=shard.split, row=row.id)
        if leak := self._leak(row, task):
            self._say(shard.file, place, "task", leak)
        if row.split and row.split != shard.split:
            self._say(shard.file, place, "split", f"is {row.split[:80]!r} in a file of {shard.split!r}")
        sums = self._sums[shard.split]
        sums["rows"] += 1
        sums["tokens"] += row.token_count
        sums["turns"] += row.turns
        if isinstance(row, RowFacts):
            sums["trained_turns"] += row.trained_turns
            return
        sums["trained_turns"] += sum(map(bool, row.mask))
        for field, message in row_faults(row):
            self._say(shard.file, place, field, message)

    def _leak(self, row: RowFacts | DatasetRow, task: TaskText) -> str:
        """What benchmark task a row gives away; empty: none. Each task is looked at once; rows of one id with
        other texts, as where ids are but numbers, are other tasks."""
        if self._leaks is None:
            return ""
        known = task.key, hash(task.text)
        if known not in self._leaking:
            leak = self._leaks.task(task)
            self._leaking[known] = _leaked(leak) if leak else ""
        found = self._leaking[known]
        if not found and self._leaks.settings.conversations and isinstance(row, DatasetRow):
            leak = self._leaks.conversation(row)
            return _leaked(leak) if leak else ""
        return found

    def _strays(self, manifest: Manifest) -> None:
        known = {shard.file for shard in manifest.shards}
        for path in sorted((self.root / DATA).glob("*.parquet")):
            file = f"{DATA}/{path.name}"
            if file not in known:
                self._say(file, None, "", "is not in the manifest, and others would read it as a part")

    def _totals(self, manifest: Manifest) -> None:
        """Only where every row could be read: else what is missing was said already."""
        if self._rows != manifest.rows:
            return
        for split, totals in manifest.splits.items():
            for name in _TOTALS:
                said, found = getattr(totals, name), self._sums[split][name]
                if said != found:
                    self._say(
                        MANIFEST_NAME, None, f"splits.{split}.{name}", f"is {said}, and the rows have {found}"
                    )

    def _together(self, manifest: Manifest) -> None:
        for fault in self._tasks.faults(near=_near_asked(manifest)):
            self._say(MANIFEST_NAME, None, "splits", fault)
        twice = self._ids.twice()
        if not twice:
            return
        for shard in manifest.shards:
            try:
                for first, table in ShardReader(self.root, shard).tables(("id",)):
                    names = values("id", table, path=shard.file, first=first)
                    for place, name in enumerate(names, first):
                        if self._ids.is_twice(name, twice):
                            self._say(shard.file, place, "id", f"{name[:80]!r} is the id of two rows")
            except DatasetCorrupt:
                continue  # said before


_TOTALS = ("rows", "tokens", "turns", "trained_turns")


def _leaked(leak: Leak) -> str:
    return (
        f"is {leak.benchmark_task} of the benchmark {leak.benchmark}: {leak.kind.value} in the {leak.where}"
    )


def _bare(error: DatasetCorrupt) -> str:
    """The message without the place, which the fault tells."""
    return error.message.partition(": ")[2] if error.message.startswith(error.path) else error.message


def _near_asked(manifest: Manifest) -> float | None:
    """How alike the recipe held tasks to be nearly equal; what every mix does where it says nothing."""
    splits = manifest.made.recipe.get("splits")
    asked = splits.get("similar_tasks", NEAR) if isinstance(splits, dict) else NEAR
    return asked if asked is None or (isinstance(asked, float) and 0 < asked <= 1) else NEAR
