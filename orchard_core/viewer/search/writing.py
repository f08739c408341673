"""Putting what is new of a run or dataset into its index."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from orchard_core.errors import OrchardError
from orchard_core.viewer.search.place import TURN_BITS, index_path, open_to_write
from orchard_core.viewer.sources.contract import Source
from orchard_core.viewer.sources.line import Line

_COMMIT_S = 1.0


def bring_up_to_date(source: Source, cache: Path, *, going_on: Callable[[], bool] = lambda: True) -> int:
    """Read every rollout that the index lacks; gives how many. What is done is kept whenever it ends.

    Raises OSError and sqlite3.Error when the index cannot be written.
    """
    index = open_to_write(index_path(source.root, cache), source.root)
    try:
        known: dict[str, str] = dict(index.execute("SELECT key, mark FROM docs"))
        missing = [line for line in source.lines().lines if known.get(line.key) != line.mark]
        return _write(index, source, iter(missing), going_on)
    finally:
        index.close()


def _write(
    index: sqlite3.Connection, source: Source, missing: Iterator[Line], going_on: Callable[[], bool]
) -> int:
    count = 0
    while True:
        until = time.monotonic() + _COMMIT_S
        before = count
        index.execute("BEGIN")
        for line in missing:
            _add(index, source, line)
            count += 1
            if time.monotonic() > until or not going_on():
                break
        index.execute("COMMIT")
        if count == before or not going_on():
            return count


def _add(index: sqlite3.Connection, source: Source, line: Line) -> None:
    index.execute("DELETE FROM docs WHERE key = ?", (line.key,))
    number = index.execute("INSERT INTO docs (key, mark) VALUES (?, ?)", (line.key, line.mark)).lastrowid
    assert number is not None
    try:
        for turn, text in source.texts(line):
            place = number << TURN_BITS | min(turn, (1 << TURN_BITS) - 1)
            storable = text.encode("utf-8", "replace").decode()
            index.execute("INSERT INTO texts(rowid, body) VALUES (?, ?)", (place, storable))
    except OrchardError:
        return  # a damaged record holds no text; its page says what is wrong with it
