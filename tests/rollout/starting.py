"""Starting whole runs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable

from orchard_core import Rollout
from orchard_core.rollout.retry import RetryPolicy

RETRY = RetryPolicy(backoff_s=0.01)
Runs = Callable[..., AsyncGenerator[Rollout, None]]


async def collected(rollouts: AsyncIterator[Rollout]) -> list[Rollout]:
    return [rollout async for rollout in rollouts]
