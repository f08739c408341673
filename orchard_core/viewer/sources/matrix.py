"""A matrix: its cells are runs, and its list is all of theirs."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchard_core.errors import OrchardError
from orchard_core.rollout.matrix.key import CellKey
from orchard_core.rollout.matrix.plan import cell_directory, read_plan
from orchard_core.rollout.store.run import CONFIG_NAME, PLAN_NAME, open_run
from orchard_core.viewer.pieces import Piece
from orchard_core.viewer.sources.contract import Lines
from orchard_core.viewer.sources.line import Line
from orchard_core.viewer.sources.run import RunSource, line_facts
from orchard_core.viewer.trace.cutting import Room
from orchard_core.viewer.trace.parts import Trace
from orchard_core.viewer.trace.tokens import SampledToken


@dataclass(frozen=True, slots=True, kw_only=True)
class CellSource:
    """One combination."""

    key: CellKey
    """Which."""
    run: RunSource | None
    """None: it has not started, or cannot be read."""
    reason: str = ""
    """Why it was refused, or cannot be read."""


class MatrixSource:
    """One matrix."""

    kind = "matrix"

    def __init__(self, key: str, root: Path) -> None:
        """Raises RunNotFound, RecordCorrupt, StoreError."""
        self._key, self._root = key, root
        self._lock = threading.Lock()
        self._stamp = self._now()
        self._plan = read_plan(root)
        self._runs: dict[CellKey, RunSource] = {}
        self._lines: Lines | None = None

    @property
    def key(self) -> str:
        """See Source."""
        return self._key

    @property
    def root(self) -> Path:
        """See Source."""
        return self._root

    @property
    def title(self) -> str:
        """Its directory's name."""
        return self._root.resolve().name

    def cells(self) -> Sequence[CellSource]:
        """Every combination; those that were added or have begun since are found."""
        self._follow_plan()
        found = []
        for number, cell in enumerate(self._plan.cells, 1):
            run, reason = self._runs.get(cell.key), cell.refused
            directory = cell_directory(self._root, cell.key)
            if run is None and (directory / CONFIG_NAME).is_file():
                try:
                    run = RunSource(f"{self._key}.{number}", open_run(directory))
                except OrchardError as error:
                    reason = error.message
                else:
                    run = self._runs.setdefault(cell.key, run)
            found.append(CellSource(key=cell.key, run=run, reason=reason))
        return found

    def _now(self) -> tuple[int, int]:
        told = (self._root / PLAN_NAME).stat()
        return told.st_size, told.st_mtime_ns

    def _follow_plan(self) -> None:
        """Cells are only ever added at the end, so that their numbers stay."""
        try:
            now = self._now()
            if now != self._stamp:
                self._plan, self._stamp = read_plan(self._root), now
        except (OSError, OrchardError):
            return  # what is known stays readable

    def facts(self) -> Mapping[str, str]:
        """See Source."""
        cells = self.cells()
        shared = self._plan.shared
        return {
            "cells": f"{sum(cell.run is not None for cell in cells):,} of {len(cells):,}",
            **line_facts(self.lines()),
            "attempts": str(shared.attempts),
            "sandbox": shared.sandbox.text,
        }

    def lines(self) -> Lines:
        """See Source."""
        held = [cell.run.lines() for cell in self.cells() if cell.run is not None]
        stamp = tuple(lines.stamp for lines in held)
        with self._lock:
            if self._lines is None or self._lines.stamp != stamp:
                every = [line for lines in held for line in lines.lines]
                self._lines = Lines(
                    lines=every,
                    by_key={f"{line.source}/{line.key}": place for place, line in enumerate(every)},
                    planned=sum(lines.planned for lines in held),
                    stamp=stamp,
                )
            return self._lines

    def run_of(self, line: Line) -> RunSource:
        """The cell that a line is from."""
        number = int(line.source.partition(".")[2]) - 1
        return self._runs[self._plan.cells[number].key]

    def trace(self, line: Line, *, first: int = 0, room: Room | None = None, samples: bool = True) -> Trace:
        """See Source."""
        return self.run_of(line).trace(line, first=first, room=room, samples=samples)

    def piece(self, line: Line, ref: str) -> Piece | None:
        """See Source."""
        return self.run_of(line).piece(line, ref)

    def tokens(self, line: Line, number: int) -> Sequence[SampledToken]:
        """See Source."""
        return self.run_of(line).tokens(line, number)

    def texts(self, line: Line) -> Iterator[tuple[int, str]]:
        """See Source."""
        return self.run_of(line).texts(line)

    def raw(self, line: Line) -> bytes:
        """See Source."""
        return self.run_of(line).raw(line)
