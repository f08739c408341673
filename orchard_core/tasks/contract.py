"""What a task set gives: everything its tasks need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol, runtime_checkable

from pydantic import JsonValue

from orchard_core.reward.contract import Reward
from orchard_core.sandbox.contract import Sandbox
from orchard_core.types.sandbox import SandboxSpec
from orchard_core.types.task import Solution, Task
from orchard_core.types.tool import ToolResult, ToolSpec


@runtime_checkable
class Tool(Protocol):
    """Something a model can call."""

    @property
    def name(self) -> str:
        """What the model calls; `[a-zA-Z0-9_-]{1,64}`."""

    @property
    def description(self) -> str:
        """What it does, in words for a model."""

    @property
    def parameters(self) -> Mapping[str, JsonValue]:
        """JSON Schema of the arguments object."""

    async def call(self, args: Mapping[str, JsonValue]) -> ToolResult:
        """Do it. A mistake of the model's is a result with `is_error`; only infrastructure raises."""


@runtime_checkable
class TaskSet(Protocol):
    """A named collection of tasks. Nothing that belongs to a task runs or is imported on the host."""

    @property
    def name(self) -> str:
        """As the user named it, such as `workbench:16`."""

    def tasks(self) -> Iterable[Task]:
        """The tasks in a fixed order. Broken ones are left out and listed by `problems`."""

    def problems(self) -> Sequence[str]:
        """One line for each task or key that `tasks` left out or ignored, after it was iterated."""

    def spec(self, task: Task) -> SandboxSpec:
        """The sandbox the task needs; used for the agent and, unless the reward says otherwise, to verify."""

    def session(self, task: Task, sandbox: Sandbox) -> AbstractAsyncContextManager[Sequence[Tool]]:
        """Prepare the sandbox, start services, give the task's own tools; on exit stop what was started.

        Raises TaskInvalid when the task's own set-up fails.
        """

    def reward(self, task: Task) -> Reward:
        """How the task is scored."""

    def solution(self, task: Task) -> Solution | None:
        """The known solution, None when there is none."""


@runtime_checkable
class ToolsKnown(Protocol):
    """What a task set may offer beside `TaskSet`: it knows a task's tools without a sandbox, so that a
    harness which cannot reach them is refused before anything starts."""

    def tools_of(self, task: Task) -> Sequence[ToolSpec] | None:
        """The tools that `session` will give, none of them called; None when only the session can tell."""
