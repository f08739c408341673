"""A task set made of a list."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from orchard_core.reward.contract import Reward
from orchard_core.sandbox.contract import Sandbox
from orchard_core.tasks.contract import Tool
from orchard_core.testing.fakes.reward import FakeReward, file_holds
from orchard_core.types.sandbox import SandboxSpec
from orchard_core.types.task import Solution, SolutionStep, Task

ANSWER_PATH = "/workspace/answer.txt"
"""Where the tasks of `FakeTaskSet.of` want their answer."""


class FakeTaskSet:
    """Honours `orchard_core.TaskSet`. Rewards and solutions are looked up by task id."""

    def __init__(
        self,
        tasks: Sequence[Task],
        *,
        name: str = "fake",
        rewards: Mapping[str, Reward] | None = None,
        solutions: Mapping[str, Solution] | None = None,
        spec: SandboxSpec = SandboxSpec(),  # noqa: B008 - frozen
        tools: Sequence[Tool] = (),
        prepare: Callable[[Task, Sandbox], Awaitable[None]] | None = None,
        problems: Sequence[str] = (),
    ) -> None:
        self._tasks = list(tasks)
        self._name = name
        self._rewards = rewards or {}
        self._solutions = solutions or {}
        self._spec = spec
        self._tools = tools
        self._prepare = prepare
        self._problems = list(problems)
        self.open_sessions = 0
        """Sessions entered and not left."""

    @classmethod
    def of(cls, count: int, *, name: str = "fake") -> FakeTaskSet:
        """Tasks of writing a number into a file, with rewards and solutions that fit."""
        numbers = {f"write-{number}": str(number) for number in range(count)}
        return cls(
            [_write_task(task_id, text, name) for task_id, text in numbers.items()],
            name=name,
            rewards={
                task_id: FakeReward(file_holds(ANSWER_PATH, text.encode()))
                for task_id, text in numbers.items()
            },
            solutions={
                task_id: Solution(
                    steps=(SolutionStep(command=f"printf {text} > answer.txt", thought="Write it down."),)
                )
                for task_id, text in numbers.items()
            },
        )

    @property
    def name(self) -> str:
        """See TaskSet."""
        return self._name

    def tasks(self) -> Sequence[Task]:
        """See TaskSet."""
        return list(self._tasks)

    def problems(self) -> Sequence[str]:
        """See TaskSet."""
        return self._problems

    def spec(self, task: Task) -> SandboxSpec:
        """See TaskSet."""
        return self._spec.model_copy(update={"workdir": task.workdir})

    def session(self, task: Task, sandbox: Sandbox) -> AbstractAsyncContextManager[Sequence[Tool]]:
        """See TaskSet."""
        return self._session(task, sandbox)

    def reward(self, task: Task) -> Reward:
        """See TaskSet; a task without one of its own always scores 1."""
        return self._rewards.get(task.id) or FakeReward()

    def solution(self, task: Task) -> Solution | None:
        """See TaskSet."""
        return self._solutions.get(task.id)

    @asynccontextmanager
    async def _session(self, task: Task, sandbox: Sandbox) -> AsyncIterator[Sequence[Tool]]:
        self.open_sessions += 1
        try:
            if self._prepare is not None:
                await self._prepare(task, sandbox)
            yield self._tools
        finally:
            self.open_sessions -= 1


def _write_task(task_id: str, text: str, taskset: str) -> Task:
    return Task(
        id=task_id,
        taskset=taskset,
        instruction=f"Write {text} into answer.txt, without a newline.",
        artifacts=(ANSWER_PATH,),
        agent_timeout_s=60,
        verifier_timeout_s=30,
        digest=f"{task_id}-1",
    )
