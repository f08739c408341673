"""Slots under several bounds: first come first served, but nobody waits for room that another could use."""

from __future__ import annotations

import asyncio

from orchard_core.rollout.slots import SharedSlots, Slots


async def settle() -> None:
    """Let every task that can go on do so."""
    for _ in range(20):
        await asyncio.sleep(0)


class Holder:
    """A task that holds a slot until it is let go."""

    def __init__(self, slots: Slots) -> None:
        self.holds = False
        self._free = asyncio.Event()
        self.task = asyncio.create_task(self._hold(slots))

    async def _hold(self, slots: Slots) -> None:
        async with slots.held():
            self.holds = True
            await self._free.wait()
        self.holds = False

    async def leave(self) -> None:
        self._free.set()
        await self.task
        await settle()


async def test_a_busy_lane_does_not_hold_up_another() -> None:
    slots = SharedSlots({"overall": 3, "slow": 1})
    slow, quick = slots.of("overall", "slow"), slots.of("overall", "quick")
    first, second, third = Holder(slow), Holder(slow), Holder(quick)
    await settle()
    assert [holder.holds for holder in (first, second, third)] == [True, False, True]
    await first.leave()
    assert second.holds
    for holder in (second, third):
        await holder.leave()


async def test_the_overall_bound_holds_and_the_first_in_line_comes_first() -> None:
    lane = SharedSlots({"overall": 1}).of("overall")
    holders = [Holder(lane) for _ in range(3)]
    for holder in holders:
        await settle()
        assert [other.holds for other in holders].count(True) == 1
        assert holder.holds
        await holder.leave()


async def test_one_who_stops_waiting_takes_nothing_with_him() -> None:
    lane = SharedSlots({"overall": 1}).of("overall")
    first, second, third = Holder(lane), Holder(lane), Holder(lane)
    await settle()
    second.task.cancel()
    await asyncio.gather(second.task, return_exceptions=True)
    await first.leave()
    assert third.holds
    third.task.cancel()
    await asyncio.gather(third.task, return_exceptions=True)
    last = Holder(lane)
    await settle()
    assert last.holds
    await last.leave()


async def test_one_cancelled_in_the_moment_of_being_admitted_gives_the_slot_back() -> None:
    lane = SharedSlots({"overall": 1}).of("overall")
    first, second = Holder(lane), Holder(lane)
    await settle()
    first._free.set()
    await first.task  # has admitted the second, which did not run yet
    second.task.cancel()
    await asyncio.gather(second.task, return_exceptions=True)
    third = Holder(lane)
    await settle()
    assert third.holds
    await third.leave()
