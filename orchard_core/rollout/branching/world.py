"""The parts of a replayed rollout that stand for those of the recorded one."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace

from pydantic import JsonValue

from orchard_core.gateway.contract import BeforeCall, Model, SessionContext
from orchard_core.reward.contract import Reward
from orchard_core.rollout.branching.logged_sandbox import LoggedSandbox
from orchard_core.rollout.branching.model import ReplayingModel
from orchard_core.rollout.branching.operations import Doing, OperationLog, within_tool
from orchard_core.rollout.branching.replay import Replay
from orchard_core.rollout.session import ModelGateway, ModelSession
from orchard_core.sandbox.contract import Sandbox, SandboxProvider
from orchard_core.tasks.contract import TaskSet, Tool
from orchard_core.tasks.wrapper import ToolWrapper
from orchard_core.types.harness import Limits
from orchard_core.types.model import ModelCall
from orchard_core.types.sandbox import Capabilities, SandboxSpec, Snapshot
from orchard_core.types.task import Solution, Task
from orchard_core.types.tool import ToolResult


class ReplayGateway:
    """Honours `ModelGateway`, for one rollout: its session replays, and its calls may be held."""

    def __init__(
        self,
        gateway: ModelGateway,
        model: ReplayingModel,
        replay: Replay,
        *,
        name: str,
        before_call: BeforeCall | None = None,
    ) -> None:
        self._gateway = gateway
        self._model = model
        self._replay = replay
        self._name = name
        self._before_call = before_call

    async def open_session(
        self,
        model: Model,
        context: SessionContext,
        *,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        before_call: BeforeCall | None = None,
        on_call: Callable[[ModelCall], None] | None = None,
        tools: Sequence[Tool] = (),
    ) -> ModelSession:
        """See ModelGateway. A judge's session is none of ours."""
        if model is self._model:
            context = replace(context, rollout=self._name)
            self._model.promise(self._name, self._replay)
            before_call = self._before_call
        return await self._gateway.open_session(
            model, context, limits=limits, before_call=before_call, on_call=on_call, tools=tools
        )


class LoggedProvider:
    """Honours `SandboxProvider`. The agent's sandbox is logged, and made from a snapshot when there is one; a
    verifier's is the provider's own."""

    def __init__(
        self,
        provider: SandboxProvider,
        log: OperationLog,
        *,
        restore: Snapshot | None = None,
        made: Callable[[Sandbox], None] = lambda _sandbox: None,
    ) -> None:
        self._provider = provider
        self._log = log
        self._restore = restore
        self._made = made

    @property
    def name(self) -> str:
        """See SandboxProvider."""
        return self._provider.name

    async def capabilities(self) -> Capabilities:
        """See SandboxProvider."""
        return await self._provider.capabilities()

    async def create(self, spec: SandboxSpec, *, restore: Snapshot | None = None) -> Sandbox:
        """See SandboxProvider."""
        if "orchard.role" in spec.labels:
            return await self._provider.create(spec, restore=restore)
        sandbox = await self._provider.create(spec, restore=self._restore)
        self._made(sandbox)
        return LoggedSandbox(sandbox, self._log)

    async def discard(self, snapshot: Snapshot) -> None:
        """See SandboxProvider."""
        await self._provider.discard(snapshot)

    async def close(self) -> None:
        """The provider is not ours to close."""


class LoggedTaskSet:
    """Honours `TaskSet`: the task's tools are logged as well."""

    def __init__(self, taskset: TaskSet, log: OperationLog, *, on_tool: Callable[[], None]) -> None:
        self._taskset = taskset
        self._log = log
        self._on_tool = on_tool

    @property
    def name(self) -> str:
        """See TaskSet."""
        return self._taskset.name

    def tasks(self) -> Iterable[Task]:
        """See TaskSet."""
        return self._taskset.tasks()

    def problems(self) -> Sequence[str]:
        """See TaskSet."""
        return self._taskset.problems()

    def spec(self, task: Task) -> SandboxSpec:
        """See TaskSet."""
        return self._taskset.spec(task)

    def session(self, task: Task, sandbox: Sandbox) -> AbstractAsyncContextManager[Sequence[Tool]]:
        """See TaskSet."""
        return self._session(task, sandbox)

    def reward(self, task: Task) -> Reward:
        """See TaskSet."""
        return self._taskset.reward(task)

    def solution(self, task: Task) -> Solution | None:
        """See TaskSet."""
        return self._taskset.solution(task)

    @asynccontextmanager
    async def _session(self, task: Task, sandbox: Sandbox) -> AsyncIterator[Sequence[Tool]]:
        async with self._taskset.session(task, sandbox) as tools:
            yield [LoggedTool(tool, self._log, self._on_tool) for tool in tools]


class LoggedTool(ToolWrapper):
    """Honours `orchard_core.Tool`."""

    def __init__(self, tool: Tool, log: OperationLog, on_call: Callable[[], None]) -> None:
        super().__init__(tool)
        self._log = log
        self._on_call = on_call

    async def call(self, args: Mapping[str, JsonValue]) -> ToolResult:
        """See Tool."""
        self._on_call()
        doing = Doing(what=("tool", self._tool.name, json.dumps(args, sort_keys=True)))
        return await self._log.once(doing, lambda: self._called(args))

    async def _called(self, args: Mapping[str, JsonValue]) -> ToolResult:
        with within_tool():
            return await self._tool.call(args)
