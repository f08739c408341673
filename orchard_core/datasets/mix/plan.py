"""The plan of a mix: which row stands where. Made once from what was read, then only looked up."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from orchard_core.datasets.mix.gather import drop_duplicates, gather
from orchard_core.datasets.mix.parting import part_rows
from orchard_core.datasets.mix.recipe import MixRecipe
from orchard_core.datasets.mix.scan import Scan
from orchard_core.datasets.mix.select import select
from orchard_core.errors import DatasetError

PLAN = "plan.sqlite"
_CACHE_KB = 64_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedShard:
    """One file to write."""

    number: int
    """Its place in the plan."""
    split: str
    """Whose rows it holds."""
    place: int
    """Its place among the split's shards."""
    rows: int
    """How many it holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRow:
    """One row to write."""

    source: int
    """The source whose spool holds it."""
    offset: int
    """Where its frame lies."""
    length: int
    """Bytes of the frame."""
    name: str
    """The id it gets."""


class Plan:
    """The plan in its file."""

    def __init__(self, path: Path, recipe: MixRecipe) -> None:
        self._path = path
        self._splits = list(recipe.splits.shares)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(f"file:{self._path}?mode=ro", uri=True)) as base:
            yield base

    def shards(self) -> list[PlannedShard]:
        """All files, in order."""
        places: dict[int, int] = {}
        found = []
        with self._open() as base:
            asked = "SELECT shard, min(part), count(*) FROM plan GROUP BY shard ORDER BY shard"
            for shard, part, rows in base.execute(asked):
                place = places[part] = places.get(part, -1) + 1
                found.append(PlannedShard(number=shard, split=self._splits[part], place=place, rows=rows))
        return found

    def rows(self, shard: int) -> Iterator[PlannedRow]:
        """Rows of a file, in order."""
        with self._open() as base:
            asked = (
                "SELECT rows.source, rows.offset, rows.length, plan.name FROM plan JOIN rows USING (seq) "
                "WHERE plan.shard = ? ORDER BY plan.number"
            )
            for source, offset, length, name in base.execute(asked, (shard,)):
                yield PlannedRow(source=source, offset=offset, length=length, name=name)

    def kept(self) -> Mapping[int, tuple[int, int]]:
        """By source: rows of the dataset, and how many different ones these are."""
        with self._open() as base:
            asked = (
                "SELECT source, count(*), count(DISTINCT seq) FROM plan JOIN rows USING (seq) GROUP BY source"
            )
            return {source: (rows, different) for source, rows, different in base.execute(asked)}

    def splits(self) -> Mapping[str, int]:
        """Rows of each split, in the recipe's order."""
        with self._open() as base:
            found = dict(base.execute("SELECT part, count(*) FROM plan GROUP BY part"))
        return {name: found.get(place, 0) for place, name in enumerate(self._splits)}

    def gone(self) -> Mapping[int, Mapping[str, int]]:
        """By source: rows that were left out here, by reason."""
        found: dict[int, dict[str, int]] = {}
        with self._open() as base:
            asked = "SELECT source, gone, count(*) FROM rows WHERE gone IS NOT NULL GROUP BY source, gone"
            for source, reason, count in base.execute(asked):
                found.setdefault(source, {})[reason] = count
        return found

    def strata(self) -> Iterator[tuple[str, int, str, str, str, str, int, int]]:
        """Split, source, harness, model, task set, outcome, rows there are, and rows that are taken."""
        with self._open() as base:
            yield from base.execute(
                "SELECT part, source, harness, model, taskset, outcome, count, quota FROM cells ORDER BY cell"
            )

    def notes(self) -> Sequence[str]:
        """What could not be met, a sentence each."""
        with self._open() as base:
            return [note for (note,) in base.execute("SELECT note FROM notes ORDER BY rowid")]


def make_plan(work: Path, recipe: MixRecipe, jobs: Sequence[Scan]) -> Plan:
    """The plan, made unless an earlier start has made it. Raises ConfigError for shares that cannot be had,
    DatasetError when the disk is full."""
    path = work / PLAN
    if not path.exists():
        part = path.with_suffix(".part")
        part.unlink(missing_ok=True)
        try:
            with closing(sqlite3.connect(part, isolation_level=None)) as base:
                _fill(base, recipe, jobs)
        except sqlite3.Error as error:
            raise DatasetError(
                f"{part} cannot be written: {error}",
                hint="make room on the disk and run the command again: it goes on",
            ) from error
        with part.open("rb") as whole:
            os.fsync(whole.fileno())
        part.replace(path)
    return Plan(path, recipe)


def _fill(base: sqlite3.Connection, recipe: MixRecipe, jobs: Sequence[Scan]) -> None:
    base.execute(f"PRAGMA cache_size = -{_CACHE_KB}")
    base.execute("PRAGMA journal_mode = OFF")  # a plan that was not finished is made anew
    base.execute("PRAGMA synchronous = OFF")
    gather(base, jobs, recipe.seed)
    base.execute("BEGIN")
    drop_duplicates(base, recipe.filters)
    base.execute("CREATE TABLE notes (note TEXT)")
    base.executemany("INSERT INTO notes VALUES (?)", ((note,) for note in part_rows(base, recipe)))
    select(base, recipe)
    base.execute("COMMIT")
