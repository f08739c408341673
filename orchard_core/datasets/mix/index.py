"""What one source gave: small facts of each row that its filters left, in a file of its own.

A chunk of frames is written first, and then named by one transaction here, so that a kill loses one chunk:
what the spool holds beyond `spooled` is cut.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from orchard_core.errors import DatasetError

EXAMPLES = 3
"""Rows kept as examples of each reason."""

_SCHEMA = """
CREATE TABLE kept (
    ord INTEGER PRIMARY KEY, id TEXT, content BLOB, offset INTEGER, length INTEGER, size INTEGER,
    tokens INTEGER, turns INTEGER, harness TEXT, model TEXT, taskset TEXT, name TEXT, outcome TEXT,
    signature BLOB
);
CREATE TABLE tasks (
    taskset TEXT, name TEXT, task TEXT, text TEXT, digest TEXT, PRIMARY KEY (taskset, name)
);
CREATE TABLE drops (reason TEXT PRIMARY KEY, count INTEGER);
CREATE TABLE examples (reason TEXT, ord INTEGER, id TEXT, why TEXT);
CREATE TABLE state (
    one INTEGER PRIMARY KEY CHECK (one = 1), read INTEGER, passed INTEGER, spooled INTEGER, digest TEXT,
    files TEXT, boot TEXT, done INTEGER
);
INSERT INTO state VALUES (1, 0, 0, 0, '', '', '', 0);
"""


class Kept(NamedTuple):
    """Facts of a row, as a tuple for the index."""

    ord: int
    """Its place in the source, from 0."""
    id: str
    """Its id."""
    content: bytes
    """Digest of its messages and tools."""
    offset: int
    """Where its frame lies in the spool."""
    length: int
    """Bytes of the frame."""
    size: int
    """Bytes of the row."""
    tokens: int
    """Its tokens."""
    turns: int
    """Its answers."""
    harness: str
    """Its harness; likewise model and task set."""
    model: str
    taskset: str
    name: str
    """The task's name: its id, or a hash of its text where it has none."""
    outcome: str
    """How it ended, or `unknown`."""
    signature: bytes
    """For near duplicates; empty when they are not looked for."""


class KnownTask(NamedTuple):
    """A task of the rows."""

    taskset: str
    """Its task set."""
    name: str
    """As in `Kept`."""
    task: str
    """Its id, or empty."""
    text: str
    """Its instruction."""
    digest: str
    """Hash of everything that defines it, or empty."""


class Dropped(NamedTuple):
    """A row that a filter dropped."""

    reason: str
    """The filter."""
    ord: int
    """Its place in the source."""
    id: str
    """Its id."""
    why: str
    """In words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """How far a source was read."""

    read: int = 0
    """Rows read."""
    passed: int = 0
    """Of these, not dropped."""
    spooled: int = 0
    """Bytes of the spool that count."""
    digest: str = ""
    """Chained digest of all rows read."""
    files: str = ""
    """Names, sizes and times of the source's files when reading began, as JSON."""
    boot: str = ""
    """Which start of the machine that was in."""
    done: bool = False
    """There is nothing more to read."""


class Index:
    """The index of one source; raises DatasetError when the disk does not take it."""

    def __init__(self, path: Path) -> None:
        fresh = not path.exists()
        with _told(path):
            self._base = sqlite3.connect(path, isolation_level=None)
            self._base.execute("PRAGMA journal_mode = WAL")
            self._base.execute("PRAGMA synchronous = NORMAL")  # rows are not synced either (see scan.py)
            if fresh or not self._base.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                self._base.executescript(f"BEGIN; {_SCHEMA} COMMIT;")
        self._path = path

    def state(self) -> State:
        """As of the last chunk."""
        row = self._base.execute(
            "SELECT read, passed, spooled, digest, files, boot, done FROM state"
        ).fetchone()
        read, passed, spooled, digest, files, boot, done = row
        return State(
            read=read, passed=passed, spooled=spooled, digest=digest, files=files, boot=boot, done=bool(done)
        )

    def add(
        self,
        kept: Sequence[Kept],
        tasks: Iterable[KnownTask],
        dropped: Sequence[Dropped],
        state: State,
    ) -> None:
        """One chunk, whole or not at all; on return no kill takes it back."""
        with _told(self._path):
            self._base.execute("BEGIN")
            marks = ",".join("?" * len(Kept._fields))
            self._base.executemany(f"INSERT INTO kept VALUES ({marks})", kept)  # noqa: S608 - marks alone
            self._base.executemany("INSERT OR IGNORE INTO tasks VALUES (?, ?, ?, ?, ?)", tasks)
            for reason, count in Counter(drop.reason for drop in dropped).items():
                self._count(reason, count, [drop for drop in dropped if drop.reason == reason])
            self._base.execute(
                "UPDATE state SET read = ?, passed = ?, spooled = ?, digest = ?, files = ?, boot = ?, "
                "done = ?",
                (state.read, state.passed, state.spooled, state.digest, state.files, state.boot, state.done),
            )
            self._base.execute("COMMIT")

    def _count(self, reason: str, count: int, drops: Sequence[Dropped]) -> None:
        found = self._base.execute("SELECT count FROM drops WHERE reason = ?", (reason,)).fetchone()
        before = found[0] if found else 0
        self._base.execute("INSERT OR REPLACE INTO drops VALUES (?, ?)", (reason, before + count))
        room = max(0, EXAMPLES - before)
        self._base.executemany("INSERT INTO examples VALUES (?, ?, ?, ?)", drops[:room])

    def drops(self) -> dict[str, int]:
        """Rows dropped, by reason."""
        return dict(self._base.execute("SELECT reason, count FROM drops ORDER BY reason"))

    def examples(self) -> Iterator[Dropped]:
        """The first rows of each reason."""
        yield from map(Dropped._make, self._base.execute("SELECT reason, ord, id, why FROM examples"))

    def close(self) -> None:
        """Give the file back, all of it in one place."""
        with _told(self._path), closing(self._base):
            self._base.execute("PRAGMA wal_checkpoint(TRUNCATE)")


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise DatasetError(
            f"{path} cannot be used: {error}",
            hint="make room on the disk and run the command again: it goes on",
        ) from error
