"""Bounds on time that share a timer."""

from __future__ import annotations

import asyncio
from time import monotonic

import pytest

from orchard_core.gateway.deadline import Deadline


async def test_each_ends_at_its_own_time_though_they_share_a_timer() -> None:
    async def bounded(after: float) -> float:
        await asyncio.sleep(after)
        began = monotonic()
        with pytest.raises(TimeoutError), Deadline(0.2):
            await asyncio.sleep(5)
        return monotonic() - began

    async def quick() -> None:
        with Deadline(0.2):
            await asyncio.sleep(0.01)

    took, *_ = await asyncio.gather(
        asyncio.gather(*(bounded(after) for after in (0, 0.05, 0.15, 0.3))), quick(), quick()
    )
    assert all(0.19 <= each < 0.6 for each in took)


async def test_a_cancelled_task_stays_cancelled() -> None:
    async def bounded() -> None:
        with Deadline(5):
            await asyncio.sleep(5)

    task = asyncio.ensure_future(bounded())
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_of_two_equal_ones_one_tells_and_the_task_goes_on() -> None:
    with pytest.raises(TimeoutError), Deadline(0.05), Deadline(0.05):
        await asyncio.sleep(5)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


def test_each_loop_has_its_own() -> None:
    async def late() -> None:
        with pytest.raises(TimeoutError), Deadline(0.02):
            await asyncio.sleep(5)

    asyncio.run(late())
    asyncio.run(late())
