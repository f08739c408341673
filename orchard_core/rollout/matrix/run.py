"""Running a matrix: every cell at once, under shared bounds, each rollout durable before it is given."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pydantic import JsonValue

from orchard_core.errors import ConfigError, OrchardError
from orchard_core.rollout.matrix.caps import Budget, MatrixCaps, MeteredGateway
from orchard_core.rollout.matrix.directory import MatrixDirectory
from orchard_core.rollout.matrix.key import CellKey
from orchard_core.rollout.matrix.loading import REFUSALS, Loader
from orchard_core.rollout.matrix.plan import MatrixPlan, MatrixShared, PlannedCell, cell_directory
from orchard_core.rollout.matrix.watching import MatrixWatcher, NobodyWatches
from orchard_core.rollout.retry import RetryPolicy
from orchard_core.rollout.sampler import FixedSampler
from orchard_core.rollout.selecting import selection
from orchard_core.rollout.session import ModelGateway
from orchard_core.rollout.slots import SharedSlots
from orchard_core.rollout.starting import RunRequest, started
from orchard_core.rollout.stop import Stop
from orchard_core.rollout.store.state import RunState
from orchard_core.types.rollout import Rollout

_OVERALL = "overall"
Item = tuple[CellKey, Rollout]


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixOptions:
    """How a matrix is run; none of it changes what a rollout is."""

    concurrency: int = 8
    """Rollouts at once, over all cells."""
    model_concurrency: Mapping[str, int] = field(default_factory=dict)
    """Rollouts at once by model, as the table calls it."""
    harness_concurrency: Mapping[str, int] = field(default_factory=dict)
    """Rollouts at once by harness, as the table calls it."""
    caps: MatrixCaps = field(default_factory=MatrixCaps)
    """Bounds over the whole matrix."""
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    """What is started again, by whose doing the failure was."""
    strict: bool = False
    """Raise, before anything runs, the first reason why a cell cannot be run."""

    def check(self, plan: MatrixPlan) -> None:
        """Raises ConfigError for a bound below 1, or of something that the matrix does not hold."""
        for bounds, names in (
            (self.model_concurrency, {cell.key.model for cell in plan.cells}),
            (self.harness_concurrency, {cell.key.harness for cell in plan.cells}),
        ):
            if unknown := sorted(bounds.keys() - names):
                raise ConfigError(
                    f"there is a bound for {unknown[0]!r}, which is not in the matrix",
                    hint=f"name it as the table does: {', '.join(sorted(names))}",
                )
        every = (self.concurrency, *self.model_concurrency.values(), *self.harness_concurrency.values())
        if min(every) < 1:
            raise ConfigError("a matrix runs at least one rollout at once", hint="give 1 or more of each")

    def slots(self) -> SharedSlots:
        """The bounds, by name."""
        models = {f"model {name}": bound for name, bound in self.model_concurrency.items()}
        harnesses = {f"harness {name}": bound for name, bound in self.harness_concurrency.items()}
        return SharedSlots({_OVERALL: self.concurrency, **models, **harnesses})


class MatrixRun:
    """One start of a matrix."""

    def __init__(
        self,
        directory: MatrixDirectory,
        options: MatrixOptions,
        *,
        gateway: ModelGateway,
        given: Mapping[tuple[str, str], Any],
        watcher: MatrixWatcher | None = None,
        stop: Stop | None = None,
    ) -> None:
        """`given` holds parts that the caller made, by kind and what the table calls them."""
        self._directory = directory
        self._options = options
        self._given = given
        self._watcher = watcher or NobodyWatches()
        self._stop = stop or Stop()
        self._slots = options.slots()
        self._budget = Budget(options.caps, self._reached)
        self._gateway = MeteredGateway(gateway, self._budget)
        self._refused: dict[CellKey, str] = {}
        self._capped = False
        self._results: asyncio.Queue[Item] = asyncio.Queue(maxsize=options.concurrency)

    async def rollouts(self) -> AsyncGenerator[Item, None]:
        """Open every cell that can be run, then run them all; what was refused is noted in the plan."""
        async with AsyncExitStack() as stack:
            loader = Loader(stack, given=self._given)
            loader.provider(self._directory.plan.shared.sandbox)  # without it there is no cell at all
            opened: dict[CellKey, AsyncGenerator[Rollout, None]] = {}
            for cell in self._directory.plan.cells:
                await self._open(cell, loader, stack, opened)
            self._directory.note_refusals(self._refused)
            end_clock = self._start_clock()
            try:
                async with aclosing(self._gathered(opened)) as items:
                    async for item in items:
                        yield item
            finally:
                end_clock()
                self._directory.note_refusals(self._refused)

    async def _open(
        self,
        cell: PlannedCell,
        loader: Loader,
        stack: AsyncExitStack,
        opened: dict[CellKey, AsyncGenerator[Rollout, None]],
    ) -> None:
        shared = self._directory.plan.shared
        async with AsyncExitStack() as own:
            try:
                parts = loader.parts(cell, shared, self._gateway)
                opened[cell.key] = await started(own, parts, self._request(cell))
            except REFUSALS as error:
                if self._options.strict:
                    raise
                self._refuse(cell.key, error)
            else:
                stack.push_async_callback(own.pop_all().aclose)

    def _request(self, cell: PlannedCell) -> RunRequest:
        shared, options, key = self._directory.plan.shared, self._options, cell.key
        bounds = (
            options.concurrency,
            options.model_concurrency.get(key.model, options.concurrency),
            options.harness_concurrency.get(key.harness, options.concurrency),
        )
        return RunRequest(
            out=cell_directory(self._directory.root, key),
            resume=True,
            attempts=shared.attempts,
            concurrency=min(bounds),
            seed=shared.seed,
            select=selection(shared.tasks, shared.limit),
            retry=options.retry,
            sampler=FixedSampler(size=shared.attempts),
            observers=[("matrix", partial(self._watcher.event, key))],
            stop=self._stop,
            options={"recipe": recipe_fields(cell, shared)},
            slots=self._slots.of(_OVERALL, f"model {key.model}", f"harness {key.harness}"),
            opened=partial(self._opened, key),
        )

    def _opened(self, key: CellKey, state: RunState) -> None:
        self._watcher.opened(key, state)
        self._budget.add(state.spent())

    async def _gathered(
        self, opened: Mapping[CellKey, AsyncGenerator[Rollout, None]]
    ) -> AsyncGenerator[Item, None]:
        """Rollouts of all cells as they end. Raises what is no single cell's matter, as StoreError."""
        pumps = [asyncio.create_task(self._pump(key, rollouts)) for key, rollouts in opened.items()]
        ended: asyncio.Future[Any] = asyncio.gather(*pumps)
        getter = asyncio.create_task(self._results.get())
        try:
            while True:
                await asyncio.wait({ended, getter}, return_when=asyncio.FIRST_COMPLETED)
                if not getter.done():
                    break
                yield getter.result()
                getter = asyncio.create_task(self._results.get())
            while not self._results.empty():
                yield self._results.get_nowait()
            await ended
        finally:
            for task in (getter, *pumps):  # one that failed leaves the others running
                task.cancel()
            await asyncio.gather(getter, *pumps, ended, return_exceptions=True)

    async def _pump(self, key: CellKey, rollouts: AsyncGenerator[Rollout, None]) -> None:
        try:
            async for rollout in rollouts:
                await self._results.put((key, rollout))
        except REFUSALS as error:
            if self._options.strict:
                raise
            self._refuse(key, error)

    def _refuse(self, key: CellKey, error: OrchardError) -> None:
        reason = f"{error.message}; {error.hint}" if error.hint else error.message
        self._refused[key] = reason
        self._watcher.refused(key, reason)

    def _start_clock(self) -> Callable[[], None]:
        """Starts it, and gives what ends it."""
        limit = self._options.caps.time_s
        if limit is None:
            return lambda: None
        reason = f"{limit:g} seconds are over"
        return asyncio.get_running_loop().call_later(limit, self._reached, reason).cancel

    def _reached(self, reason: str) -> None:
        if self._capped:
            return
        self._capped = True
        self._watcher.capped(reason)
        self._stop.request()


def recipe_fields(cell: PlannedCell, shared: MatrixShared) -> dict[str, JsonValue]:
    """The cell as `orchard run` stores what it was asked for, so that it can also resume the cell alone."""
    parts = {"taskset": cell.taskset, "harness": cell.harness, "model": cell.model, "sandbox": shared.sandbox}
    fields: dict[str, JsonValue] = {"tasks": list(shared.tasks), "limit": shared.limit}
    for name, part in parts.items():
        fields[name] = part.name
        fields[f"{name}_options"] = dict(part.options)
    return fields
