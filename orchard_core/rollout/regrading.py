"""Grading what a run kept, without running an agent and without a model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from orchard_core.errors import ConfigError, RecordCorrupt, RegradeRefused
from orchard_core.gateway.contract import Model, SessionContext, Upstream
from orchard_core.rollout.grading import regrade
from orchard_core.rollout.opening import plugin_versions
from orchard_core.rollout.parts import RolloutParts
from orchard_core.rollout.session import ModelSession
from orchard_core.rollout.store.entry import Finished
from orchard_core.rollout.store.run import open_run, read_config
from orchard_core.rollout.store.writer import RunWriter
from orchard_core.sandbox.contract import SandboxProvider
from orchard_core.sandbox.unbroken import unbroken
from orchard_core.tasks.contract import TaskSet
from orchard_core.types.base import Record
from orchard_core.types.harness import HarnessCapabilities, HarnessResult
from orchard_core.types.rollout import Rollout


class Regraded(Record):
    """What came of grading one rollout again."""

    rollout: str
    """Its id."""
    task: str
    """The task's id."""
    before: float | None
    """The score it had."""
    after: float | None
    """The score it has now; what could not be judged again keeps the one it had."""
    refused: str = ""
    """Why it has no new score; empty: it has one."""


def to_regrade(root: Path, *, every: bool) -> list[Finished]:
    """Finished rollouts of a run that would be graded: those without a score, or all. Raises RunNotFound."""
    return [entry for entry in open_run(root).finished() if every or entry.score is None]


async def regrade_run(
    root: str | Path,
    *,
    taskset: TaskSet,
    provider: SandboxProvider,
    every: bool = False,
    concurrency: int = 4,
) -> AsyncGenerator[Regraded, None]:
    """Grade the rollouts of a run that have no score, or `every` one; give each result once it is durable.

    The records that were there stay in the run, see `Run.history`. A judgement that fails never replaces a
    score. Leaving early keeps what was given.

    Raises RunNotFound, RunLocked; StoreError when the disk fails.
    """
    path = Path(root)
    config = read_config(path)
    async with await RunWriter.open(path, config, resume=True) as writer:
        parts = RolloutParts(
            taskset=taskset,
            harness=_NoHarness(),
            model=_NoModel(),
            provider=provider,
            gateway=_NoGateway(),
            judge=_no_judge,
            blobs=writer.blobs,
            settings=config.settings,
            versions=plugin_versions(),
        )
        todo = [entry for entry in writer.state.finished.values() if every or entry.score is None]
        async with AsyncExitStack() as stack:
            results = _Regrading(writer, parts).results(todo, concurrency)
            stack.push_async_callback(results.aclose)
            async for result in results:
                yield result


class _Regrading:
    def __init__(self, writer: RunWriter, parts: RolloutParts) -> None:
        self._writer = writer
        self._parts = parts

    async def results(self, todo: Sequence[Finished], concurrency: int) -> AsyncGenerator[Regraded, None]:
        """In the order they end."""
        slots = asyncio.Semaphore(concurrency)
        tasks = [asyncio.create_task(self._one(entry, slots)) for entry in todo]
        try:
            for next_one in asyncio.as_completed(tasks):
                yield await next_one
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _one(self, entry: Finished, slots: asyncio.Semaphore) -> Regraded:
        async with slots:
            try:
                graded = await regrade(await self._writer.load(entry), self._parts)
            except (RegradeRefused, RecordCorrupt, ConfigError) as error:
                return _result(entry, entry.score, error.message)
            if graded.score is None:
                return await self._failed(entry, graded)
            await unbroken(self._writer.finish(graded))
        return _result(entry, graded.score)

    async def _failed(self, entry: Finished, graded: Rollout) -> Regraded:
        reason = graded.error.message if graded.error else "the verifier gave no score"
        if entry.score is None:
            await unbroken(self._writer.finish(graded))  # the newest reason is worth keeping
        return _result(entry, entry.score, reason)


def _result(entry: Finished, after: float | None, refused: str = "") -> Regraded:
    return Regraded(rollout=entry.id, task=entry.task, before=entry.score, after=after, refused=refused)


def _no_model() -> ConfigError:
    return ConfigError(
        "the reward asks for a model to judge with, and grading again makes no model call",
        hint="run the rollout again, or call orchard_core.regrade with a judge",
    )


def _no_judge(name: str) -> Model:
    raise _no_model()


class _NoModel:
    name = ""
    price = None
    concurrency = None

    def upstream(self, context: SessionContext) -> Upstream:
        raise _no_model()

    async def close(self) -> None:
        """Nothing is held."""


class _NoGateway:
    async def open_session(self, *_parts: Any, **_rest: Any) -> ModelSession:
        raise _no_model()


class _NoHarness:
    name = ""
    version = ""
    capabilities = HarnessCapabilities()

    async def run(self, *_parts: Any) -> HarnessResult:
        raise _no_model()
