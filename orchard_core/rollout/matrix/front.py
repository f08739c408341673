"""The front door of a matrix."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from orchard_core.gateway.contract import Model
from orchard_core.harness.contract import Harness
from orchard_core.rollout.matrix.directory import MatrixDirectory
from orchard_core.rollout.matrix.loading import check_names
from orchard_core.rollout.matrix.plan import MatrixPart, MatrixPlan, MatrixShared
from orchard_core.rollout.matrix.run import Item, MatrixOptions, MatrixRun
from orchard_core.rollout.matrix.watching import MatrixWatcher
from orchard_core.rollout.session import ModelGateway
from orchard_core.rollout.stop import Stop
from orchard_core.sandbox.contract import SandboxProvider
from orchard_core.tasks.contract import TaskSet


async def run_matrix(
    *,
    harnesses: Sequence[str | MatrixPart | Harness] = (),
    models: Sequence[str | MatrixPart | Model] = (),
    tasksets: Sequence[str | MatrixPart | TaskSet] = (),
    out: str | Path,
    shared: MatrixShared | None = None,
    options: MatrixOptions | None = None,
    provider: SandboxProvider | None = None,
    gateway: ModelGateway | None = None,
    watcher: MatrixWatcher | None = None,
    stop: Stop | None = None,
) -> AsyncGenerator[Item, None]:
    """Run every harness with every model on every task set; give each rollout once it is durable.

    On a directory that holds a matrix, what is missing there is run, and the cells and attempts that are new
    are added. Without any harness, model and task set, what the directory holds is gone on with. A cell that
    cannot be run is passed over, with its reason in `matrix.json`, unless `options.strict`. `provider`
    takes the place of the one that `shared` names. Leaving the loop early cancels what runs; `stop` stops in
    order, and is asked by the matrix itself when a bound of `options.caps` is reached.

    Raises UnknownPlugin for a name that no plugin has, before anything starts; ConfigError when an option
    that decides what a rollout is differs from before; RunLocked; StoreError when the disk fails.
    """
    options = options or MatrixOptions()
    given: dict[tuple[str, str], Any] = {}
    if provider is not None:
        part = _part("sandbox", provider, given)
        shared = (shared or MatrixShared()).model_copy(update={"sandbox": part})
    wanted = MatrixPlan(shared=shared, cells=()) if shared else None
    if harnesses or models or tasksets:
        wanted = MatrixPlan.product(
            harnesses=[_part("harness", item, given) for item in harnesses],
            models=[_part("model", item, given) for item in models],
            tasksets=[_part("taskset", item, given) for item in tasksets],
            shared=shared or MatrixShared(),
            created_at=time.time(),
        )
        check_names(wanted, given)
    with await asyncio.to_thread(MatrixDirectory.open, Path(out), wanted) as directory:
        options.check(directory.plan)
        async with AsyncExitStack() as stack:
            run = MatrixRun(
                directory, options, gateway=gateway or await _gateway(stack), given=given, watcher=watcher,
                stop=stop,
            )  # fmt: skip
            rollouts = run.rollouts()
            stack.push_async_callback(rollouts.aclose)
            async for item in rollouts:
                yield item


def _part(kind: str, item: Any, given: dict[tuple[str, str], Any]) -> MatrixPart:
    if isinstance(item, MatrixPart):
        return item
    if isinstance(item, str):
        return MatrixPart(name=item)
    given[kind, item.name] = item
    return MatrixPart(name=item.name)


async def _gateway(stack: AsyncExitStack) -> ModelGateway:
    from orchard_core.gateway.server import Gateway

    return await stack.enter_async_context(Gateway())
