"""What a matrix consists of, as stored in its directory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from pydantic import Field, JsonValue

from orchard_core.errors import ConfigError, RunNotFound, StoreError
from orchard_core.rollout.config import Difference, flat
from orchard_core.rollout.matrix.key import CellKey
from orchard_core.rollout.settings import RolloutSettings
from orchard_core.rollout.store.files import Files, write_whole
from orchard_core.rollout.store.record import parse_record
from orchard_core.rollout.store.run import PLAN_NAME
from orchard_core.types.base import Record
from orchard_core.types.harness import Limits

CELLS = "cells"
_MAY_CHANGE = ("attempts", "settings.phases.", "settings.jitter_s", "settings.verify_tries")


class MatrixPart(Record):
    """A harness, model, task set or sandbox provider as the user named it."""

    name: str = Field(min_length=1)
    """As in `orchard run`, such as `openai:NAME`."""
    label: str = ""
    """What the table calls it; empty: its name. Two parts of one name need labels."""
    options: Mapping[str, JsonValue] = Field(default_factory=dict)
    """Its options; never secrets."""

    @property
    def text(self) -> str:
        """What the table calls it."""
        return self.label or self.name


class PlannedCell(Record):
    """One combination."""

    harness: MatrixPart
    """What drives the model."""
    model: MatrixPart
    """The model."""
    taskset: MatrixPart
    """The tasks."""
    refused: str = ""
    """Why it cannot be run, as far as the newest start knows."""

    @property
    def key(self) -> CellKey:
        """What names it."""
        return CellKey(harness=self.harness.text, model=self.model.text, taskset=self.taskset.text)


class MatrixShared(Record):
    """What all rollouts of a matrix have in common."""

    sandbox: MatrixPart = MatrixPart(name="local")
    """Sandbox provider."""
    tasks: tuple[str, ...] = ()
    """Globs of task ids; empty: all."""
    limit: int | None = Field(default=None, ge=1)
    """At most so many tasks of each task set, the first ones."""
    attempts: int = Field(default=1, ge=1)
    """Attempts at each task."""
    seed: int = 0
    """Seed all other seeds are derived from."""
    limits: Limits = Limits()
    """Bounds of each rollout."""
    settings: RolloutSettings = RolloutSettings()
    """Deadlines of the phases and what is allowed."""


class MatrixPlan(Record):
    """What is in `matrix.json`."""

    schema_version: int = 1
    """Version of this record's shape."""
    shared: MatrixShared
    """What all cells have in common."""
    cells: tuple[PlannedCell, ...]
    """In the order they were asked for."""
    created_at: float = 0.0
    """Seconds since the epoch."""

    @classmethod
    def product(
        cls,
        *,
        harnesses: Sequence[MatrixPart],
        models: Sequence[MatrixPart],
        tasksets: Sequence[MatrixPart],
        shared: MatrixShared,
        created_at: float,
    ) -> Self:
        """Every combination. Raises ConfigError when two parts have one name, or a kind has none."""
        for kind, parts in (("harness", harnesses), ("model", models), ("task set", tasksets)):
            _check_named_apart(kind, parts)
        cells = tuple(
            PlannedCell(harness=harness, model=model, taskset=taskset)
            for taskset in tasksets
            for model in models
            for harness in harnesses
        )
        return cls(shared=shared, cells=cells, created_at=created_at)

    def extended(self, wanted: MatrixPlan, *, root: Path) -> MatrixPlan:
        """This stored plan with the cells and attempts that `wanted` adds.

        Raises ConfigError when anything differs that decides what a rollout is.
        """
        _refuse(root, "", shared_differences(self.shared, wanted.shared))
        if wanted.shared.attempts < self.shared.attempts:
            raise ConfigError(
                f"{root} holds {self.shared.attempts} attempts at each task, and "
                f"{wanted.shared.attempts} are asked for",
                hint="attempts can be added, not taken away; or choose another --out",
            )
        cells = {cell.key: cell for cell in self.cells}
        for cell in wanted.cells:
            known = cells.setdefault(cell.key, cell)
            _refuse(root, f" {cell.key.text}", _cell_differences(known, cell))
        return self.model_copy(update={"shared": wanted.shared, "cells": tuple(cells.values())})

    def with_refusals(self, reasons: Mapping[CellKey, str]) -> MatrixPlan:
        """The plan that says of every cell whether it is refused, and why."""
        cells = (cell.model_copy(update={"refused": reasons.get(cell.key, "")}) for cell in self.cells)
        return self.model_copy(update={"cells": tuple(cells)})


def cell_directory(root: Path, key: CellKey) -> Path:
    """Where a cell's run lies."""
    return root / CELLS / key.slug


def is_matrix(root: Path) -> bool:
    """Whether this is a matrix directory."""
    return (root / PLAN_NAME).is_file()


def read_plan(root: Path) -> MatrixPlan:
    """The stored plan. Raises RunNotFound, RecordCorrupt, StoreError for that of a newer Orchard."""
    try:
        text = (root / PLAN_NAME).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise RunNotFound(f"there is no matrix at {root}", hint="orchard matrix --out DIRECTORY") from None
    return parse_record(MatrixPlan, text, path=root / PLAN_NAME)


def write_plan(files: Files, root: Path, plan: MatrixPlan) -> None:
    """Store it, whole or not at all. Raises StoreError when the disk fails."""
    try:
        write_whole(files, root / PLAN_NAME, plan.model_dump_json(indent=2).encode())
    except OSError as error:
        raise StoreError(
            f"{root / PLAN_NAME} cannot be written: {error.strerror}",
            hint=f"mend that, then go on with: orchard matrix --out {root}",
        ) from error


def shared_differences(left: MatrixShared, right: MatrixShared) -> list[Difference]:
    """What differs in a way that changes a rollout."""
    found = _differences(left.model_dump(mode="json"), right.model_dump(mode="json"))
    return [item for item in found if not item.field.startswith(_MAY_CHANGE)]


def _cell_differences(left: PlannedCell, right: PlannedCell) -> list[Difference]:
    fields = {"harness", "model", "taskset"}
    return _differences(
        left.model_dump(mode="json", include=fields), right.model_dump(mode="json", include=fields)
    )


def _differences(left: Mapping[str, JsonValue], right: Mapping[str, JsonValue]) -> list[Difference]:
    a, b = flat(left), flat(right)
    return [
        Difference(field=name, left=a.get(name), right=b.get(name))
        for name in sorted(a.keys() | b.keys())
        if a.get(name) != b.get(name)
    ]


def _refuse(root: Path, what: str, found: Sequence[Difference]) -> None:
    if found:
        lines = "; ".join(f"{item.field}: {item.left!r} then, {item.right!r} now" for item in found[:8])
        raise ConfigError(
            f"{root}{what} was started with other options ({lines})",
            hint="give the same options, or choose another --out",
        )


def _check_named_apart(kind: str, parts: Sequence[MatrixPart]) -> None:
    if not parts:
        raise ConfigError(f"the matrix names no {kind}", hint="orchard matrix --help")
    names = [part.text for part in parts]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(
                f"the matrix names the {kind} {name!r} twice",
                hint="give each a `label` of its own in the YAML",
            )
