"""Running a step under its own deadline, without mistaking a time-out inside it for ours."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from orchard_core.errors import DeadlineExceeded

T = TypeVar("T")
_LOG = logging.getLogger("orchard.rollout")


@asynccontextmanager
async def deadline(phase: str, limit_s: float) -> AsyncIterator[None]:
    """Raise DeadlineExceeded when the body runs past the limit; a TimeoutError of the body's own passes."""
    began = time.monotonic()
    timer = asyncio.timeout(limit_s)
    try:
        async with timer:
            yield
    except TimeoutError as error:
        if timer.expired():
            elapsed = time.monotonic() - began
            raise DeadlineExceeded(phase, limit_s=limit_s, elapsed_s=elapsed) from error
        raise


async def within(
    phase: str,
    limit_s: float,
    work: Coroutine[Any, Any, T],
    *,
    grace_s: float,
    extra_s: Callable[[], float] = lambda: 0.0,
) -> T:
    """Run foreign work as a task of its own under a deadline of `limit_s + extra_s()` seconds.

    When the deadline passes, or the caller is cancelled, the work is cancelled and has `grace_s` to end;
    work that will not end is left behind, so that it cannot hold the caller. Raises DeadlineExceeded.
    """
    began = time.monotonic()
    task = asyncio.ensure_future(contained(work, phase))
    try:
        while not task.done():
            left = limit_s + extra_s() - (time.monotonic() - began)
            if left <= 0:
                break
            await asyncio.wait({task}, timeout=left)
    except asyncio.CancelledError:
        await _end(task, phase, grace_s)
        raise
    if task.done():
        return _outcome(task, phase)
    await _end(task, phase, grace_s)
    raise DeadlineExceeded(phase, limit_s=limit_s, elapsed_s=time.monotonic() - began)


async def contained(work: Coroutine[Any, Any, T], phase: str) -> T:
    """Foreign code that calls `sys.exit` ends its own step, not the driver with every other rollout."""
    try:
        return await work
    except SystemExit as error:
        raise RuntimeError(f"the {phase} step called sys.exit({error.code!r})") from error


def _outcome(task: asyncio.Future[T], phase: str) -> T:
    if task.cancelled():
        # Nobody cancelled us: the work cancelled itself, which would otherwise look like the user's doing.
        raise RuntimeError(f"the {phase} step cancelled itself")
    return task.result()


async def _end(task: asyncio.Future[Any], phase: str, grace_s: float) -> None:
    task.cancel()
    try:
        done, _ = await asyncio.wait({task}, timeout=grace_s)
    except asyncio.CancelledError:  # told twice: leave it behind at once
        task.add_done_callback(_forget)
        raise
    if done:
        _forget(task)
        return
    _LOG.warning("%s did not end within %g s after it was cancelled, and is left behind", phase, grace_s)
    task.add_done_callback(_forget)


def _forget(task: asyncio.Future[Any]) -> None:
    if not task.cancelled():
        task.exception()
