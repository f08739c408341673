"""A synchronous program beside the event loop."""

from __future__ import annotations

import asyncio
import threading

import pytest

from orchard_core import ThreadBridge


def alive() -> int:
    return sum(thread.name == "harness" for thread in threading.enumerate())


async def doubled(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


async def test_the_program_waits_on_the_loop_and_its_result_comes_back() -> None:
    bridge = ThreadBridge()
    seen: list[str] = []

    def program() -> int:
        seen.append(threading.current_thread().name)
        return bridge.wait(doubled(20)) + bridge.wait(doubled(1))

    assert await bridge.drive(program) == 42
    assert seen == ["harness"]
    assert alive() == 0


async def test_what_the_wait_raises_is_raised_in_the_program_and_what_that_raises_comes_back() -> None:
    bridge = ThreadBridge()

    async def fails() -> None:
        raise KeyError("inner")

    def program() -> None:
        try:
            bridge.wait(fails())
        except KeyError as error:
            raise LookupError("outer") from error

    with pytest.raises(LookupError, match="outer"):
        await bridge.drive(program)


@pytest.mark.parametrize("error", [StopIteration("x"), SystemExit(3), KeyboardInterrupt()])
async def test_a_program_cannot_end_the_loop(error: BaseException) -> None:
    def program() -> None:
        raise error

    with pytest.raises(RuntimeError, match=type(error).__name__):
        await ThreadBridge().drive(program)


async def test_cancelling_ends_the_wait_with_its_clean_up_and_the_thread() -> None:
    bridge = ThreadBridge()
    begun, cleaned = asyncio.Event(), asyncio.Event()

    async def for_ever() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.set()

    def stubborn() -> None:
        while True:
            try:
                bridge.wait(for_ever())
            except Exception:  # noqa: BLE001 - what a careless program does
                continue

    run = asyncio.create_task(bridge.drive(stubborn))
    await begun.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert cleaned.is_set()
    assert alive() == 0


async def test_many_run_side_by_side() -> None:
    gate = asyncio.Barrier(40)

    async def meet() -> int:
        return await gate.wait()

    async def one() -> int:
        bridge = ThreadBridge()
        return await bridge.drive(lambda: bridge.wait(meet()))

    async with asyncio.timeout(60):
        places = await asyncio.gather(*(one() for _ in range(40)))
    assert sorted(places) == list(range(40)), "all of them waited at once"
