"""The `claw-bench` task set: converted on demand, then read like any other Harbor directory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from orchard_core import (
    HarborConfig,
    HarborTaskSet,
    ImageRef,
    Reward,
    Sandbox,
    SandboxSpec,
    ScratchDirectory,
    Solution,
    Task,
    Tool,
    write_task,
)
from orchard_domain_claw import python
from orchard_domain_claw.config import ClawBenchConfig
from orchard_domain_claw.convert import convert
from orchard_domain_claw.select import select
from orchard_domain_claw.source import read_all, tasks_root


class ClawBench:
    """Holds converted task directories for as long as it lives."""

    def __init__(self, config: ClawBenchConfig):
        root = tasks_root()
        tasks, self._unread = read_all(root)
        self._directory = ScratchDirectory()
        parent = self._directory.path
        for task in select(tasks, config.select):
            write_task(parent, convert(task, root))
        mounted = config.python == "mount"
        self._harbor = HarborTaskSet(
            HarborConfig(path=parent),
            name=f"claw-bench:{config.select}" if config.select else "claw-bench",
            image=ImageRef.parse(config.image),
            mounts=python.mounts(parent) if mounted else (),
            env=python.ENV if mounted else {},
        )

    @property
    def name(self) -> str:
        """As the user named it."""
        return self._harbor.name

    def tasks(self) -> Iterable[Task]:
        """The chosen tasks by id."""
        return self._harbor.tasks()

    def problems(self) -> Sequence[str]:
        """What could not be read."""
        return (*self._unread, *self._harbor.problems())

    def directory(self, task: Task) -> Path:
        """The converted directory on this machine."""
        return self._harbor.directory(task)

    def spec(self, task: Task) -> SandboxSpec:
        """No network; pytest and PyYAML where Python finds them."""
        return self._harbor.spec(task)

    def session(self, task: Task, sandbox: Sandbox) -> AbstractAsyncContextManager[Sequence[Tool]]:
        """Run the task's own set-up script inside."""
        return self._harbor.session(task, sandbox)

    def reward(self, task: Task) -> Reward:
        """The task's own checks, by pytest, in a fresh sandbox."""
        return self._harbor.reward(task)

    def solution(self, task: Task) -> Solution | None:
        """The task's own solve.sh, cut into commands."""
        return self._harbor.solution(task)
