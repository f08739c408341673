"""A journal that another process writes, read as it grows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from orchard_core.rollout.store.entry import Entry
from orchard_core.rollout.store.journal import decode


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mark:
    """The last valid line that was read."""

    begin: int
    """Where it stands, in bytes."""
    line: bytes
    """The line, newline included."""


class JournalTail:
    """Gives each valid line once, and all of them again where the journal is not the one that was read: its
    writer cuts what was torn, and a machine that lost power has less than others have seen."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mark = _Mark(begin=0, line=b"")

    def new(self) -> list[Entry]:
        """What was added since the last look; none where there is no journal (yet). Raises OSError."""
        try:
            with self._path.open("rb") as stream:
                stream.seek(self._mark.begin)
                text = stream.read()
                if not text.startswith(self._mark.line):
                    self._mark = _Mark(begin=0, line=b"")
                    stream.seek(0)
                    text = stream.read()
        except FileNotFoundError:
            self._mark = _Mark(begin=0, line=b"")
            return []
        return self._read(text)

    def _read(self, text: bytes) -> list[Entry]:
        """A bad line with nothing valid after it may be half written, and is looked at again."""
        found: list[Entry] = []
        at, known = self._mark.begin, len(self._mark.line)
        for line in text[known:].splitlines(keepends=True):
            entry = decode(line[:-1]) if line.endswith(b"\n") else None
            if entry is not None:
                found.append(entry)
                self._mark = _Mark(begin=at + known, line=line)
            known += len(line)
        return found
