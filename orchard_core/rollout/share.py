"""The part of a run that one of several workers takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from orchard_core.errors import ConfigError
from orchard_core.types.task import Task

FOLDER = "workers"
"""Directory of a run in which its workers' own runs lie until all of it is collected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Every `count`th task, beginning with number `index`; all attempts at a task stay with one worker, as
    group samplers need them together."""

    index: int
    """From 0."""
    count: int
    """Number of workers."""

    def __post_init__(self) -> None:
        """Raises ConfigError."""
        if not 0 <= self.index < self.count:
            raise ConfigError(
                f"there is no worker {self.index} of {self.count}", hint="they are numbered from 0"
            )

    def of(self, tasks: Mapping[str, Task]) -> dict[str, Task]:
        """Its tasks, in order."""
        return {name: task for number, (name, task) in enumerate(tasks.items()) if self._has(number)}

    def _has(self, number: int) -> bool:
        return number % self.count == self.index

    def folder(self, run: Path) -> Path:
        """The run directory that this worker writes."""
        return run / FOLDER / f"{self.index:03d}"
