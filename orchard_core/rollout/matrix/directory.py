"""The directory of a matrix, held while it is run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from orchard_core.errors import ConfigError
from orchard_core.rollout.matrix.key import CellKey
from orchard_core.rollout.matrix.plan import (
    CELLS,
    MatrixPlan,
    cell_directory,
    is_matrix,
    read_plan,
    write_plan,
)
from orchard_core.rollout.store.files import DiskFiles, Lock
from orchard_core.rollout.store.run import CONFIG_NAME


class MatrixDirectory:
    """Opened by one process at a time; the kernel lets go of it when that process dies."""

    def __init__(self, root: Path, *, plan: MatrixPlan, lock: Lock) -> None:
        self.root = root
        """The directory."""
        self.plan = plan
        """Everything it consists of."""
        self._lock = lock

    @classmethod
    def open(cls, root: Path, wanted: MatrixPlan | None) -> Self:
        """Make it, or take it up again with what `wanted` adds; None, or no cells: with those it has.

        Raises RunNotFound, RunLocked, ConfigError when `wanted` would mix two matrices, or a run lies there.
        """
        files = DiskFiles()
        if wanted is None or not wanted.cells:
            read_plan(root)
        if (root / CONFIG_NAME).exists():
            raise ConfigError(f"{root} holds a run, not a matrix", hint="choose another --out")
        files.make_dir(root / CELLS)
        lock = files.lock(root / "lock")
        try:
            plan = _merged(root, wanted)
            write_plan(files, root, plan)
        except BaseException:
            lock.release()
            raise
        return cls(root, plan=plan, lock=lock)

    def note_refusals(self, reasons: Mapping[CellKey, str]) -> None:
        """Store which cells cannot be run, for whoever reports."""
        self.plan = self.plan.with_refusals(reasons)
        write_plan(DiskFiles(), self.root, self.plan)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()


def _merged(root: Path, wanted: MatrixPlan | None) -> MatrixPlan:
    if not is_matrix(root):
        assert wanted is not None
        return wanted
    stored = read_plan(root)
    if wanted is None:
        return stored
    return _without_slips(root, stored, wanted).extended(wanted, root=root)


def _without_slips(root: Path, stored: MatrixPlan, wanted: MatrixPlan) -> MatrixPlan:
    """Forget refused cells that never ran and are not named again, such as a mistyped name."""
    named = {cell.key for cell in wanted.cells}
    kept = [
        cell
        for cell in stored.cells
        if not named
        or cell.key in named
        or not cell.refused
        or (cell_directory(root, cell.key) / CONFIG_NAME).exists()
    ]
    return stored.model_copy(update={"cells": tuple(kept)})
