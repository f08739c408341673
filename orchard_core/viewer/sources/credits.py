"""The credits that were assigned to a run, read anew when their directories change."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

from orchard_core.datasets.credit.head import FOLDER, HEAD_NAME, LINES_NAME
from orchard_core.datasets.credit.store import Credits, open_credits
from orchard_core.errors import OrchardError
from orchard_core.types.credit import Credit

Stamp = tuple[tuple[str, int, int], ...]


class CreditShelf:
    """All directories `RUN/credit/NAME`."""

    def __init__(self, run: Path) -> None:
        self._root = run / FOLDER
        self._lock = threading.Lock()
        self._stamp: Stamp | None = None
        self._open: dict[str, Credits] = {}
        self._damaged: dict[str, str] = {}
        self._names: dict[str, tuple[str, ...]] = {}

    def known(self) -> tuple[Mapping[str, tuple[str, ...]], Stamp]:
        """Names of the credits of each rollout, by its id, and a stamp that changes when they do."""
        with self._lock:
            stamp = self._now()
            if stamp != self._stamp:
                self._read(stamp)
            return self._names, stamp

    def names(self) -> list[str]:
        """Of all directories; of those that cannot be read, with a word that says so."""
        self.known()
        return sorted([*self._open, *(f"{name} (cannot be read)" for name in self._damaged)])

    def of(self, rollout: str) -> Mapping[str, Credit | str]:
        """Each credit of one rollout, or why it cannot be read, by its directory's name."""
        self.known()
        found: dict[str, Credit | str] = dict(self._damaged)
        for name, held in list(self._open.items()):
            if rollout in held.by_rollout:
                try:
                    found[name] = held.by_rollout[rollout]
                except OrchardError as error:
                    found[name] = error.message
        return found

    def _now(self) -> Stamp:
        found = []
        for head in sorted(self._root.glob(f"*/{HEAD_NAME}")):
            lines = head.with_name(LINES_NAME)
            told = lines.stat() if lines.is_file() else head.stat()
            found.append((head.parent.name, told.st_size, told.st_mtime_ns))
        return tuple(found)

    def _read(self, stamp: Stamp) -> None:
        found: dict[str, Credits] = {}
        damaged: dict[str, str] = {}
        names: dict[str, tuple[str, ...]] = {}
        for name, _, _ in stamp:
            try:
                held = open_credits(self._root / name)
            except OrchardError as error:
                damaged[name] = error.message
                continue
            found[name] = held
            for rollout in held.by_rollout:
                names[rollout] = (*names.get(rollout, ()), name)
        self._open, self._damaged, self._names, self._stamp = found, damaged, names, stamp
