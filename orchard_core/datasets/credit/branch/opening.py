"""The parts of a stored run, loaded again to go on with its rollouts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchard_core.errors import (
    ConfigError,
    CreditRefused,
    PluginError,
    RunNotFound,
    SandboxUnavailable,
    StoreError,
    TaskError,
)
from orchard_core.plugins import lookup
from orchard_core.rollout.branching.brancher import check_harness
from orchard_core.rollout.branching.model import ReplayingModel
from orchard_core.rollout.config import RunConfig
from orchard_core.rollout.opening import plugin_versions
from orchard_core.rollout.parts import RolloutParts
from orchard_core.rollout.session import ModelGateway
from orchard_core.rollout.store.run import read_config
from orchard_core.types.task import Task

OpenParts = Callable[[AsyncExitStack, Path], Awaitable[RolloutParts]]
"""Gives the parts of the run in a directory; what it opens is closed with the stack. Raises ConfigError,
PluginError, TaskError, StoreError and SandboxUnavailable."""

_MISSING = (ConfigError, PluginError, TaskError, StoreError, SandboxUnavailable)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedRun:
    """A run to go on with."""

    parts: RolloutParts
    """Its parts."""
    model: ReplayingModel
    """Stands for its model in all branches."""
    tasks: Mapping[str, Task] = field(default_factory=dict)
    """Its tasks by id, as the task set has them now."""


class RunOpener:
    """Opens each run once. Everything is closed with it."""

    def __init__(self, open_parts: OpenParts) -> None:
        self._open_parts = open_parts
        self._stack = AsyncExitStack()
        self._opened: dict[Path, asyncio.Task[OpenedRun]] = {}

    async def run(self, root: Path) -> OpenedRun:
        """The run in this directory. Raises CreditRefused and ConfigError."""
        if root not in self._opened:
            self._opened[root] = asyncio.create_task(self._open(root))
        return await asyncio.shield(self._opened[root])

    async def _open(self, root: Path) -> OpenedRun:
        try:
            parts = await self._open_parts(self._stack, root)
            tasks = await asyncio.to_thread(lambda: {task.id: task for task in parts.taskset.tasks()})
        except RunNotFound:
            raise
        except _MISSING as error:
            raise CreditRefused(
                f"the rollouts of {root} cannot be continued: {error.message}",
                hint=error.hint or "continue them where the run was made, or judge them: --estimator judge",
            ) from error
        check_harness(parts)
        return OpenedRun(parts=parts, model=ReplayingModel(parts.model), tasks=tasks)

    async def close(self) -> None:
        """Close what was opened; repeated calls are fine."""
        for opening in self._opened.values():
            opening.cancel()
        await asyncio.gather(*self._opened.values(), return_exceptions=True)
        self._opened.clear()
        await self._stack.aclose()


def opened_by_name(gateway: ModelGateway) -> OpenParts:
    """Loads harness, model, task set and sandbox by what the run stored of them, as resuming it would."""

    async def open_parts(stack: AsyncExitStack, root: Path) -> RolloutParts:
        config = read_config(root)
        named = _named(config.model_dump(mode="json"), config.options.get("recipe"))
        return _loaded(stack, named, gateway, config)

    return open_parts


def _named(config: Mapping[str, Any], recipe: object) -> dict[str, tuple[str, dict[str, Any]]]:
    """Name and options of each part."""
    told = recipe if isinstance(recipe, dict) else {}
    return {
        part: (str(told.get(part) or config[part]), dict(told.get(f"{part}_options") or {}))
        for part in ("taskset", "harness", "model", "sandbox")
    }


def _loaded(
    stack: AsyncExitStack,
    named: Mapping[str, tuple[str, dict[str, Any]]],
    gateway: ModelGateway,
    config: RunConfig,
) -> RolloutParts:
    def load(part: str, loader: Callable[..., Any]) -> Any:
        name, options = named[part]
        return loader(name, **options)

    provider = load("sandbox", lookup.load_provider)
    stack.push_async_callback(provider.close)
    model = load("model", lookup.load_model)
    stack.push_async_callback(model.close)
    return RolloutParts(
        taskset=load("taskset", lookup.load_taskset),
        harness=load("harness", lookup.load_harness),
        model=model,
        model_name=config.model,
        provider=provider,
        gateway=gateway,
        limits=config.limits,
        settings=config.settings,
        config_digest=config.digest,
        versions=plugin_versions(),
    )
