"""Clean-ups that go on to their end, however often the caller is cancelled."""

from __future__ import annotations

import asyncio

import pytest

from orchard_core.sandbox.unbroken import unbroken


async def _turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_a_caller_cancelled_twice_leaves_when_the_work_is_done() -> None:
    go_on = asyncio.Event()
    caller = asyncio.create_task(unbroken(go_on.wait()))
    for _ in range(3):
        await _turns(3)
        caller.cancel()
    await _turns(3)
    assert not caller.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await caller


async def test_what_the_work_returns_or_raises_reaches_the_caller() -> None:
    async def fail() -> None:
        raise ValueError("the disk")

    assert await unbroken(asyncio.sleep(0, "done")) == "done"
    with pytest.raises(ValueError, match="the disk"):
        await unbroken(fail())


async def test_a_failure_of_the_work_stands_behind_the_cancellation() -> None:
    go_on = asyncio.Event()

    async def fail() -> None:
        await go_on.wait()
        raise ValueError("the disk")

    caller = asyncio.create_task(unbroken(fail()))
    await _turns(3)
    caller.cancel()
    await _turns(3)
    go_on.set()
    with pytest.raises(asyncio.CancelledError) as cancelled:
        await caller
    assert isinstance(cancelled.value.__cause__, ValueError)
