"""The `workbench` task set: generated on demand, then read like any other Harbor directory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from pydantic import Field

from orchard_core.reward.contract import Reward
from orchard_core.sandbox.contract import Sandbox
from orchard_core.tasks.contract import Tool
from orchard_core.tasks.harbor.config import HarborConfig
from orchard_core.tasks.harbor.taskset import HarborTaskSet
from orchard_core.tasks.scratch import ScratchDirectory
from orchard_core.tasks.workbench.generate import write_workbench
from orchard_core.types.base import Record
from orchard_core.types.sandbox import SandboxSpec
from orchard_core.types.task import Solution, Task


class WorkbenchConfig(Record):
    """`workbench` or `workbench:16`."""

    count: int = Field(default=12, ge=1, le=10_000)
    """How many tasks."""
    seed: int = Field(default=0, ge=0)
    """Seed of the first round of families; later rounds count on from it."""
    families: tuple[str, ...] = ()
    """Which families, in which order; none: all of them."""


class Workbench:
    """Holds generated task directories for as long as it lives."""

    def __init__(self, config: WorkbenchConfig):
        self._directory = ScratchDirectory()
        path = self._directory.path
        write_workbench(path, count=config.count, seed=config.seed, families=config.families)
        self._harbor = HarborTaskSet(HarborConfig(path=path), name=f"workbench:{config.count}")

    @property
    def name(self) -> str:
        """`workbench:COUNT`."""
        return self._harbor.name

    def tasks(self) -> Iterable[Task]:
        """The tasks, sorted by family and seed."""
        return self._harbor.tasks()

    def problems(self) -> Sequence[str]:
        """Nothing, unless a generator is at fault."""
        return self._harbor.problems()

    def directory(self, task: Task) -> Path:
        """The task's directory on this machine."""
        return self._harbor.directory(task)

    def spec(self, task: Task) -> SandboxSpec:
        """The host's own files, no network."""
        return self._harbor.spec(task)

    def session(self, task: Task, sandbox: Sandbox) -> AbstractAsyncContextManager[Sequence[Tool]]:
        """Put the task's files into the working directory."""
        return self._harbor.session(task, sandbox)

    def reward(self, task: Task) -> Reward:
        """Its tests."""
        return self._harbor.reward(task)

    def solution(self, task: Task) -> Solution | None:
        """Its steps."""
        return self._harbor.solution(task)
