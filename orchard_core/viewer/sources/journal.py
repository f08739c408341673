"""A run's journal, followed: what was read once is never read again, so that a live run costs little."""

from __future__ import annotations

import threading
from pathlib import Path

from orchard_core.rollout.store.journal import decode
from orchard_core.rollout.store.state import RunState


class JournalTail:
    """The state of a run as its journal tells it now."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._state = RunState()
        self._read = 0
        self._stamp: tuple[int, ...] = ()

    def state(self) -> tuple[RunState, tuple[int, ...]]:
        """The state, and a stamp that changes when the journal does."""
        with self._lock:
            stamp = self._now()
            if stamp != self._stamp:
                if stamp[:2] != self._stamp[:2] or stamp[2] < self._read:
                    self._state, self._read = RunState(), 0  # another file, or a torn tail was cut
                self._follow()
                self._stamp = stamp
            return self._state, self._stamp

    def _now(self) -> tuple[int, ...]:
        try:
            told = self._path.stat()
        except OSError:
            return (0, 0, 0, 0)
        return told.st_dev, told.st_ino, told.st_size, told.st_mtime_ns

    def _follow(self) -> None:
        try:
            with self._path.open("rb") as stream:
                stream.seek(self._read)
                for line in stream:
                    entry = decode(line[:-1]) if line.endswith(b"\n") else None
                    if entry is not None:
                        self._state.apply(entry)
                    if line.endswith(b"\n"):
                        self._read += len(line)
        except OSError:
            return
