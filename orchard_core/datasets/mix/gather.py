"""All rows that the sources' filters left, in one index; duplicates among them told apart."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence

from orchard_core.datasets.mix.draw import drawn
from orchard_core.datasets.mix.filters import Drop, MixFilters
from orchard_core.datasets.mix.scan import Scan

_SCHEMA = """
CREATE TABLE rows (
    seq INTEGER PRIMARY KEY, source INTEGER, id TEXT, content BLOB, offset INTEGER, length INTEGER,
    size INTEGER, tokens INTEGER, turns INTEGER, harness TEXT, model TEXT, taskset TEXT, name TEXT,
    outcome TEXT, signature BLOB, draw INTEGER, gone TEXT, part TEXT, cell INTEGER
);
CREATE TABLE tasks (
    taskset TEXT, name TEXT, task TEXT, text TEXT, digest TEXT, PRIMARY KEY (taskset, name)
);
"""
_COPIED = (
    "id, content, offset, length, size, tokens, turns, harness, model, taskset, name, outcome, signature"
)


def gather(base: sqlite3.Connection, jobs: Sequence[Scan], seed: int) -> None:
    """Put the rows of all sources into `rows`, in the recipe's order, and their tasks into `tasks`."""
    base.executescript(_SCHEMA)
    base.create_function(
        "drawn", 2, lambda name, content: drawn(seed, "row", name, content), deterministic=True
    )
    for job in jobs:
        base.execute("ATTACH ? AS own", (str(job.index),))
        base.execute(
            f"INSERT INTO rows (source, {_COPIED}, draw) "  # noqa: S608 - names of columns, all ours
            f"SELECT ?, {_COPIED}, drawn(id, content) FROM own.kept ORDER BY ord",
            (job.number,),
        )
        base.execute("INSERT OR IGNORE INTO tasks SELECT * FROM own.tasks")
        base.execute("DETACH own")


def drop_duplicates(base: sqlite3.Connection, filters: MixFilters) -> None:
    """Mark later ones of equal rows, then of nearly equal ones among those that are left."""
    if filters.exact_duplicates:
        base.execute("CREATE INDEX by_content ON rows (content, seq)")
        base.execute(
            "UPDATE rows SET gone = ? WHERE seq NOT IN (SELECT min(seq) FROM rows GROUP BY content)",
            (Drop.EXACT_DUPLICATES.value,),
        )
        base.execute("DROP INDEX by_content")
    if filters.near_duplicates is not None:
        near = list(_near(base, filters.near_duplicates.threshold))
        base.executemany(
            "UPDATE rows SET gone = ? WHERE seq = ?", ((Drop.NEAR_DUPLICATES.value, seq) for seq in near)
        )


def _near(base: sqlite3.Connection, threshold: float) -> Iterator[int]:
    """Rows near to an earlier one of the same task under the same harness: the same calls under another are
    what a mix of harnesses is for. One index for each such pair: memory stays with the largest."""
    from orchard_core.datasets.similar.index import NearIndex

    base.execute("CREATE INDEX by_task ON rows (name, harness, seq) WHERE gone IS NULL")
    held, index = None, NearIndex[int](threshold)
    found = base.execute(
        "SELECT name, harness, seq, signature FROM rows WHERE gone IS NULL ORDER BY name, harness, seq"
    )
    for task, harness, seq, signature in found:
        if (task, harness) != held:
            held, index = (task, harness), NearIndex[int](threshold)
        if index.add(seq, signature) is not None:
            yield seq
