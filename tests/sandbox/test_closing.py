"""Many sandboxes are ended a bounded number at a time."""

from __future__ import annotations

import asyncio

import pytest

from orchard_core.sandbox.closing import each_closed


async def test_all_are_closed_and_never_more_at_once_than_said() -> None:
    open_now, most, closed = 0, 0, []

    async def close(number: int) -> None:
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)
        await asyncio.sleep(0)
        open_now -= 1
        closed.append(number)

    await each_closed(range(100), close, at_once=7)
    assert sorted(closed) == list(range(100))
    assert most == 7


async def test_one_that_fails_keeps_none_of_the_others() -> None:
    closed = []

    async def close(number: int) -> None:
        if number % 10 == 0:
            raise OSError(f"number {number}")
        closed.append(number)

    with pytest.raises(OSError, match="number 0"):
        await each_closed(range(100), close, at_once=3)
    assert len(closed) == 90
