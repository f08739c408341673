"""One run by several workers: start them, collect what they finish, and leave a run like any other."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from orchard_core.errors import RunLocked
from orchard_core.plugins.manager import installed
from orchard_core.rollout.events import EventBus
from orchard_core.rollout.opening import check_images, resolve, select_tasks
from orchard_core.rollout.parts import RolloutParts
from orchard_core.rollout.share import FOLDER
from orchard_core.rollout.starting import RunRequest
from orchard_core.rollout.store.files import DiskFiles, Lock
from orchard_core.rollout.store.writer import RunWriter
from orchard_core.rollout.workers.collector import Collector
from orchard_core.rollout.workers.contract import WorkerNews, Workforce, WorkOrder
from orchard_core.sandbox.unbroken import unbroken
from orchard_core.types.events import RunFinished, RunStarted

_LOOK_S = 0.3
_LAST_S = 60.0
"""Workers that have lost their coordinator end by themselves within this time."""


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
    collector = Collector(writer, emit=bus.emit)
    await _settle_earlier(collector, writer.root)
    planned = max(len(writer.state.planned), len(tasks) * request.attempts)
    before = len(writer.state.finished)
    bus.emit(RunStarted(run=str(writer.root), planned=planned, finished=before, at=time.time()))
    order = WorkOrder(run=writer.root, count=workers)
    try:
        await _while_collecting(collector, writer.root, workforce.work(order, request.stop, told))
    finally:
        await unbroken(collector.collect(_parts(writer.root)))
        bus.emit(
            RunFinished(
                run=str(writer.root), finished=len(writer.state.finished), cancelled=request.stop.requested,
                at=time.time(),
            )
        )  # fmt: skip
    if not request.stop.requested:
        await asyncio.to_thread(shutil.rmtree, writer.root / FOLDER, ignore_errors=True)


async def _settle_earlier(collector: Collector, root: Path) -> None:
    """Take over what workers of an earlier start have left, once they have ended. Raises RunLocked."""
    for part in _parts(root):
        lock = await _ended(part)
        try:
            await collector.collect([part])
            await asyncio.to_thread(shutil.rmtree, part)
            collector.forget(part)
        finally:
            lock.release()


async def _ended(part: Path) -> Lock:
    """The lock of its directory, when no worker writes it any more. Raises RunLocked."""
    files, end = DiskFiles(), time.monotonic() + _LAST_S
    while True:
        try:
            return files.lock(part / "lock")
        except RunLocked:
            if time.monotonic() > end:
                raise
        await asyncio.sleep(_LOOK_S)


def _parts(root: Path) -> list[Path]:
    return sorted(path.parent for path in (root / FOLDER).glob("*/journal.jsonl"))


async def _while_collecting(collector: Collector, root: Path, work: Coroutine[Any, Any, None]) -> None:
    working = asyncio.create_task(work)
    try:
        while not working.done():
            await asyncio.wait([working], timeout=_LOOK_S)
            await collector.collect(_parts(root))
        working.result()
    finally:
        working.cancel()
        await unbroken(asyncio.wait([working]))
