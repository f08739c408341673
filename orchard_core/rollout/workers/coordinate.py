"""One run by several workers: start them, collect what they finish, and leave a run like any other."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from orchard_core.plugins.manager import installed
from orchard_core.rollout.events import EventBus
from orchard_core.rollout.opening import check_images, resolve, select_tasks
from orchard_core.rollout.parts import RolloutParts
from orchard_core.rollout.share import FOLDER
from orchard_core.rollout.starting import RunRequest
from orchard_core.rollout.store.writer import RunWriter
from orchard_core.rollout.workers.collector import Collector
from orchard_core.rollout.workers.contract import WorkerNews, Workforce, WorkOrder
from orchard_core.rollout.workers.earlier import LOOK_S, parts_of, put_away, settle_earlier
from orchard_core.sandbox.unbroken import unbroken
from orchard_core.types.events import RunFinished, RunStarted


async def coordinate(
    stack: AsyncExitStack,
    parts: RolloutParts,
    request: RunRequest,
    *,
    workforce: Workforce,
    workers: int,
    told: Callable[[WorkerNews], None],
) -> None:
    """Run it to its end, or until it is asked to stop. All is checked, and the run directory opened, as for a
    single driver. Raises as `run_rollouts`, and WorkersFailed."""
    tasks = select_tasks(parts.taskset, request.select)
    await check_images(tasks.values(), parts)
    config = resolve(
        parts, tasks, sampler=request.sampler, attempts=request.attempts, concurrency=request.concurrency,
        seed=request.seed, retry=request.retry, options=request.options,
    )  # fmt: skip
    writer = await RunWriter.open(request.out, config, resume=request.resume)
    stack.push_async_callback(writer.close)
    bus = EventBus([*installed().observers(), *request.observers])
    stack.push_async_callback(asyncio.to_thread, bus.close)
    order = WorkOrder(run=writer.root, count=workers)
    collector = Collector(writer, emit=bus.emit)
    await workforce.settle(order)
    await settle_earlier(collector, writer.root)
    planned = max(len(writer.state.planned), len(tasks) * request.attempts)
    before = len(writer.state.finished)
    bus.emit(RunStarted(run=str(writer.root), planned=planned, finished=before, at=time.time()))
    try:
        await _while_collecting(collector, writer.root, workforce.work(order, request.stop, told))
    finally:
        bus.emit(
            RunFinished(
                run=str(writer.root), finished=len(writer.state.finished), cancelled=request.stop.requested,
                at=time.time(),
            )
        )  # fmt: skip
    await asyncio.to_thread(_tidy, collector, writer.root)


def _tidy(collector: Collector, root: Path) -> None:
    """All workers have ended and all that they did is in the run."""
    for part in parts_of(root):
        put_away(part, damaged=part in collector.damaged)
    for file in (root / FOLDER).glob("*.json"):
        file.unlink()
    with contextlib.suppress(OSError):  # a damaged part is kept
        (root / FOLDER).rmdir()


async def _while_collecting(collector: Collector, root: Path, work: Coroutine[Any, Any, None]) -> None:
    """Collect until the workers have ended, and then what is left. A disk that fails ends them in order."""
    working = asyncio.create_task(work)
    try:
        while not working.done():
            await asyncio.wait([working], timeout=LOOK_S)
            await collector.collect(parts_of(root))
    finally:
        working.cancel()
        await unbroken(asyncio.wait([working]))
        await unbroken(collector.collect(parts_of(root)))
    working.result()
