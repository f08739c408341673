"""Asking the indexes."""

from __future__ import annotations

import re
import sqlite3
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from orchard_core.viewer.search.place import TURN_BITS, index_path, open_to_read
from orchard_core.viewer.sources.contract import Source

_DEADLINE_S = 0.15
"""A search gives what it has found by then."""
_MOST_TURNS = 100_000
_TERM = re.compile(r'"([^"]*)"?|(\S+)')
_STEPS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A rollout in which the words were found."""

    turns: int
    """In how many turns."""
    first: int
    """Number of the first of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a search says."""

    hits: Mapping[str, Hit]
    """By the address of a rollout's page."""
    read: int
    """Rollouts that the indexes hold."""
    total: int
    """Rollouts there are."""
    cut: bool = False
    """There is more: the time was up, or there are too many."""


class Searcher:
    """Searches the indexes of some sources. May be asked from several threads."""

    def __init__(self, cache: Path, *, enabled: bool = True) -> None:
        self._cache = cache
        self.enabled = enabled
        """False: nobody makes indexes, and none is asked."""
        self._lock = threading.Lock()
        self._docs: dict[Path, tuple[int, dict[int, str]]] = {}

    def search(self, sources: Iterable[Source], text: str) -> Found:
        """The rollouts in whose messages all the words stand in one turn; the last may be a beginning."""
        hits: dict[str, Hit] = {}
        read = total = 0
        cut = False
        match = as_match(text)
        for source in sources if self.enabled else ():
            docs, index = self._open(source)
            read, total = read + len(docs), total + len(source.lines().lines)
            if index is not None:
                if match:
                    cut |= _search(index, source.key, docs, match, hits)
                index.close()
        return Found(hits=hits, read=min(read, total), total=total, cut=cut)

    def _open(self, source: Source) -> tuple[dict[int, str], sqlite3.Connection | None]:
        path = index_path(source.root, self._cache)
        index = open_to_read(path) if path.is_file() else None
        if index is None:
            return {}, None
        try:
            (newest,) = index.execute("SELECT coalesce(max(number), 0) FROM docs").fetchone()
            with self._lock:
                held = self._docs.get(path)
            if held is None or held[0] != newest:
                held = (newest, dict(index.execute("SELECT number, key FROM docs")))
                with self._lock:
                    self._docs[path] = held
        except sqlite3.Error:
            index.close()
            return {}, None
        return held[1], index


def as_match(text: str) -> str:
    """The words as an FTS5 expression in which nothing of the user's is an operator."""
    terms = [(found[1], found[2]) for found in _TERM.finditer(text)]
    quoted = [
        '"' + (phrase or word or "").replace('"', '""') + '"' for phrase, word in terms if phrase or word
    ]
    if quoted and terms[-1][1]:
        quoted[-1] += "*"
    return " AND ".join(quoted[:16])


def _search(
    index: sqlite3.Connection, source: str, docs: Mapping[int, str], match: str, hits: dict[str, Hit]
) -> bool:
    until = time.monotonic() + _DEADLINE_S
    index.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
    count = 0
    try:
        for (row,) in index.execute(
            "SELECT rowid FROM texts WHERE texts MATCH ? LIMIT ?", (match, _MOST_TURNS)
        ):
            count += 1
            key = docs.get(row >> TURN_BITS)
            if key is not None:
                address, turn = f"/{source}/{key}", row & (1 << TURN_BITS) - 1
                before = hits.get(address)
                first = turn if before is None else min(before.first, turn)
                hits[address] = Hit(turns=1 if before is None else before.turns + 1, first=first)
    except sqlite3.Error:
        return True
    return count == _MOST_TURNS
