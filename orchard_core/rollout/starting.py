"""From parts and a request to a run that goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import JsonValue

from orchard_core.plugins.manager import installed
from orchard_core.rollout.events import EventBus, Observer
from orchard_core.rollout.opening import check_images, resolve, select_tasks
from orchard_core.rollout.parts import RolloutParts
from orchard_core.rollout.retry import RetryPolicy
from orchard_core.rollout.sampler import GroupSampler
from orchard_core.rollout.scheduler import Scheduler
from orchard_core.rollout.share import Share
from orchard_core.rollout.slots import AnySlot, Slots
from orchard_core.rollout.stop import Stop
from orchard_core.rollout.store.state import RunState
from orchard_core.rollout.store.writer import RunWriter
from orchard_core.rollout.workers.collector import Collector
from orchard_core.rollout.workers.earlier import settle_earlier
from orchard_core.types.rollout import Rollout
from orchard_core.types.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What is asked for beside the parts."""

    out: Path
    """The run directory."""
    resume: bool
    """It may be there already, and exactly what is missing is run."""
    attempts: int
    """At each task; stored, and what the sampler goes by."""
    concurrency: int
    """Rollouts at once."""
    seed: int
    """All other seeds are derived from it."""
    select: Callable[[Task], bool]
    """Which tasks; asked once of each, in their order."""
    retry: RetryPolicy
    """What is started again, and how often."""
    sampler: GroupSampler
    """How many rollouts a task gets."""
    observers: Sequence[tuple[str, Observer]]
    """Who is told of events, beside the plugins, with a name for messages."""
    stop: Stop
    """Stops in order when asked."""
    options: Mapping[str, JsonValue]
    """Stored with the configuration and read by nobody."""
    slots: Slots = field(default_factory=AnySlot)
    """What a rollout waits for, beside `concurrency`, such as a model's own bound."""
    share: Share | None = None
    """What is run of it, into a directory of its own below `out`; None: all of it."""
    opened: Callable[[RunState], None] = lambda _state: None
    """Told what earlier starts left, before anything runs."""


async def started(
    stack: AsyncExitStack, parts: RolloutParts, request: RunRequest
) -> AsyncGenerator[Rollout, None]:
    """Check everything, open the run directory, and start; all of it ends with `stack`."""
    tasks = select_tasks(parts.taskset, request.select)
    await check_images(tasks.values(), parts)
    config = resolve(
        parts,
        tasks,
        sampler=request.sampler,
        attempts=request.attempts,
        concurrency=request.concurrency,
        seed=request.seed,
        retry=request.retry,
        options=request.options,
    )
    share = request.share
    out = request.out if share is None else share.folder(request.out)
    writer = await RunWriter.open(out, config, resume=request.resume or share is not None)
    stack.push_async_callback(writer.close)
    if share is not None:
        tasks = share.of(tasks)
        await writer.inherit(request.out, tasks)
    else:
        # The coordinator of an earlier start may have been killed, and its workers' runs not be taken over.
        await settle_earlier(Collector(writer, emit=lambda _event: None), writer.root)
    request.opened(writer.state)
    bus = EventBus([*installed().observers(), *request.observers])
    stack.push_async_callback(asyncio.to_thread, bus.close)
    rollouts = Scheduler(
        tasks=tasks,
        parts=replace(parts, blobs=writer.blobs, config_digest=writer.config.digest),
        writer=writer,
        sampler=request.sampler,
        concurrency=request.concurrency,
        retry=request.retry,
        seed=request.seed,
        bus=bus,
        stop=request.stop,
        slots=request.slots,
    ).rollouts()
    stack.push_async_callback(rollouts.aclose)
    return rollouts
