"""So much at once, so much waiting, and a true word to who is sent away."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from orchard_env.service.admission.gate import Gate, GateLimits
from orchard_env.service.faults import TooManyRequests

from orchard_core import ServiceOverloaded


class Clock:
    """Time that goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def gate(clock: Callable[[], float] | None = None, **limits: float) -> Gate:
    bounds = GateLimits.model_validate({"at_once": 1, "queue": 100, "tenant_queue": 100, **limits})
    return Gate("running commands", bounds, clock=clock or Clock())


async def begun(*entering: asyncio.Task[Any]) -> None:
    """Until each has come to its first wait."""
    for _ in range(3 * len(entering) + 3):
        await asyncio.sleep(0)


def enter(gate: Gate, tenant: str, weight: float = 1.0) -> asyncio.Task[float]:
    return asyncio.create_task(gate.enter(tenant, weight))


async def test_with_room_nobody_waits_and_nothing_is_scheduled() -> None:
    gate_ = gate(at_once=2)
    entering = gate_.enter("a", 1.0)
    with pytest.raises(StopIteration):
        entering.send(None)  # it comes to its end without ever giving the loop a turn
    assert gate_.load.running == 1


async def test_never_more_at_once_than_set_and_everybody_gets_a_turn() -> None:
    gate_, at_once, most = gate(at_once=3), 0, 0

    async def work(tenant: str) -> None:
        nonlocal at_once, most
        began = await gate_.enter(tenant, 1.0)
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0)
        at_once -= 1
        gate_.leave(tenant, began)

    await asyncio.gather(*(work(f"t{number % 4}") for number in range(100)))
    assert (most, at_once) == (3, 0)
    assert (gate_.load.running, gate_.load.waiting) == (0, 0)


async def test_turns_are_shared_by_weight_while_the_service_is_full() -> None:
    gate_, order = gate(), list[str]()
    began = await gate_.enter("first", 1.0)

    async def work(tenant: str, weight: float) -> None:
        since = await gate_.enter(tenant, weight)
        order.append(tenant)
        gate_.leave(tenant, since)

    tasks = [asyncio.create_task(work("floods", 1.0)) for _ in range(60)]
    tasks += [asyncio.create_task(work("pays", 3.0)) for _ in range(30)]
    await begun(*tasks)
    gate_.leave("first", began)
    await asyncio.gather(*tasks)
    assert Counter(order[:40]) == {"floods": 10, "pays": 30}


async def test_a_tenant_with_its_own_queue_full_gets_429_and_when_to_come_again() -> None:
    clock = Clock()
    gate_ = gate(clock, tenant_queue=4)
    for _ in range(200):
        began = await gate_.enter("a", 1.0)
        clock.now += 2.0
        gate_.leave("a", began)
    await gate_.enter("a", 1.0)
    waiting = [enter(gate_, "a") for _ in range(4)]
    await begun(*waiting)
    with pytest.raises(TooManyRequests, match="4 requests of tenant a wait") as refused:
        await gate_.enter("a", 1.0)
    # Five turns of two seconds each, one at once.
    assert refused.value.retry_after_s == pytest.approx(10.0, rel=0.01)
    assert refused.value.status == 429
    await cancelled(waiting)


async def test_when_others_wait_too_a_tenants_turns_come_more_slowly() -> None:
    clock = Clock()
    gate_ = gate(clock, tenant_queue=4)
    for _ in range(200):
        began = await gate_.enter("a", 1.0)
        clock.now += 2.0
        gate_.leave("a", began)
    await gate_.enter("a", 1.0)
    waiting = [*(enter(gate_, "a") for _ in range(4)), enter(gate_, "b", 3.0)]
    await begun(*waiting)
    with pytest.raises(TooManyRequests) as refused:
        await gate_.enter("a", 1.0)
    assert refused.value.retry_after_s == pytest.approx(40.0, rel=0.01)
    await cancelled(waiting)


async def test_with_the_services_queue_full_who_asks_most_is_sent_away_with_503() -> None:
    gate_ = gate(queue=10)
    await gate_.enter("floods", 1.0)
    floods = [enter(gate_, "floods") for _ in range(10)]
    await begun(*floods)
    modest = enter(gate_, "modest")
    await begun(modest)
    assert [task.done() for task in floods] == [False] * 9 + [True]
    with pytest.raises(ServiceOverloaded, match="no room") as refused:
        await floods[-1]
    assert refused.value.retry_after_s is not None
    with pytest.raises(ServiceOverloaded, match="10 requests wait already"):
        await gate_.enter("floods", 1.0)
    assert gate_.load.refused == 2
    await cancelled([*floods[:-1], modest])


async def test_who_gives_up_leaves_the_queue_and_a_turn_that_came_too_late_is_passed_on() -> None:
    gate_ = gate()
    began = await gate_.enter("a", 1.0)
    gives_up, waits, last = enter(gate_, "a"), enter(gate_, "a"), enter(gate_, "a")
    await begun(gives_up, waits, last)
    await cancelled([gives_up])
    assert gate_.load.waiting == 2
    gate_.leave("a", began)
    waits.cancel()  # its turn has come, and it has not run yet
    assert await last >= 0.0
    assert (gate_.load.running, gate_.load.waiting) == (1, 0)
    await asyncio.gather(waits, return_exceptions=True)


async def test_who_waits_too_long_is_told_so_and_leaves_the_queue() -> None:
    gate_ = gate(wait_s=0.01)
    await gate_.enter("a", 1.0)
    with pytest.raises(ServiceOverloaded, match=r"no turn came within 0\.01 s"):
        await gate_.enter("b", 1.0)
    assert gate_.load.waiting == 0


async def test_one_tenant_cannot_hold_all_the_room_there_is() -> None:
    gate_ = gate(at_once=4, tenant_share=0.75)
    held = [await gate_.enter("long", 1.0) for _ in range(3)]
    waits = enter(gate_, "long")
    await begun(waits)
    assert not waits.done()
    await gate_.enter("other", 1.0)
    gate_.leave("long", held[0])
    assert await waits >= 0.0


async def cancelled(tasks: list[asyncio.Task[float]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
