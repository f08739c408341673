"""Where an index lies, and what is in it.

One SQLite file a run or dataset, named by its path. Table `docs` holds a number, key and mark of each rollout
that was read; `texts` is an FTS5 index without content whose row id is `number << 20 | turn`. A rollout that
is recorded anew gets a new number; rows of numbers that stand in `docs` no more are passed over.
"""

from __future__ import annotations

import sqlite3
from hashlib import sha256
from pathlib import Path

from orchard_core.harness.cache import program_cache

VERSION = "1"
TURN_BITS = 20
_SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE docs (number INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, mark TEXT NOT NULL);
CREATE VIRTUAL TABLE texts USING fts5(
    body, content='', tokenize="unicode61 remove_diacritics 2 tokenchars '_'"
);
"""


def default_cache() -> Path:
    """The directory of all indexes, in the user's cache; not made here."""
    return program_cache() / "view"


def index_path(root: Path, cache: Path) -> Path:
    """The index of a run or dataset; its directory is not made here."""
    name = sha256(str(root.resolve()).encode("utf-8", "surrogateescape")).hexdigest()[:24]
    return cache / f"{name}.sqlite"


def open_to_write(path: Path, root: Path) -> sqlite3.Connection:
    """The index, made anew when it is missing, damaged or of another version.

    Raises OSError, sqlite3.Error.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        return _checked(path, root)
    except (sqlite3.Error, _OtherVersion):
        for suffix in ("", "-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        return _checked(path, root)


class _OtherVersion(Exception):
    """It was made by another release."""


def _checked(path: Path, root: Path) -> sqlite3.Connection:
    made = sqlite3.connect(path, isolation_level=None)
    try:
        path.chmod(0o600)
        made.execute("PRAGMA journal_mode=WAL")
        made.execute("PRAGMA synchronous=NORMAL")
        if not made.execute("SELECT 1 FROM sqlite_master WHERE name='meta'").fetchone():
            made.executescript(f"BEGIN;{_SCHEMA}COMMIT;")
            told = [("version", VERSION), ("root", str(root.resolve()).encode("utf-8", "replace").decode())]
            made.executemany("INSERT INTO meta VALUES (?, ?)", told)
        found = made.execute("SELECT value FROM meta WHERE name='version'").fetchone()
        if found != (VERSION,):
            raise _OtherVersion
    except BaseException:
        made.close()
        raise
    return made


def open_to_read(path: Path) -> sqlite3.Connection | None:
    """The index; None where there is none yet."""
    try:
        return sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=0.2)
    except sqlite3.Error:
        return None
