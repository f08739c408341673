"""What every shared state promises."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

import pytest
from orchard_env.service.state.contract import SharedState
from orchard_env.service.state.values import Lease

NONE = (-1, -1)
"""No limit on either sum."""


async def until(look: Callable[[], Awaitable[object]], bound_s: float = 30.0) -> Any:
    """The first true answer."""
    async with asyncio.timeout(bound_s):
        while not (found := await look()):
            await asyncio.sleep(0.01)
    return found


async def lease(state: SharedState, holder: str, ttl_s: float = 60.0) -> Lease:
    taken = await state.leases.take("reap", holder, ttl_s)
    assert taken is not None
    return taken


async def test_of_many_that_ask_at_once_one_gets_the_lease(state: SharedState) -> None:
    asked = await asyncio.gather(*(state.leases.take("reap", f"replica-{n}", 60.0) for n in range(50)))
    taken = [one for one in asked if one]
    assert len(taken) == 1
    assert await state.leases.current("reap") == taken[0]


async def test_who_holds_a_lease_prolongs_it_and_keeps_its_fence(state: SharedState) -> None:
    first = await lease(state, "a", 0.3)
    again = await lease(state, "a", 60.0)
    await asyncio.sleep(0.4)
    assert again.fence == first.fence
    assert await state.leases.current("reap") == again


async def test_a_lease_that_expired_is_anothers_with_a_larger_fence(state: SharedState) -> None:
    first = await lease(state, "a", 0.05)
    second = await until(lambda: state.leases.take("reap", "b", 60.0))
    assert second.holder == "b"
    assert second.fence > first.fence


async def test_a_dropped_lease_is_free_at_once_and_a_late_drop_takes_nobodys(state: SharedState) -> None:
    first = await lease(state, "a")
    await state.leases.drop(first)
    second = await lease(state, "b")
    await state.leases.drop(first)
    assert await state.leases.current("reap") == second


async def test_an_item_is_claimed_by_one_holder_only_and_never_with_a_lost_lease(state: SharedState) -> None:
    first = await lease(state, "a")
    assert await state.leases.claim(first, "sandbox-1", 60.0)
    assert await state.leases.claim(first, "sandbox-1", 60.0), (
        "an answer that was lost may be asked for again"
    )
    await state.leases.drop(first)
    second = await lease(state, "b")
    assert not await state.leases.claim(first, "sandbox-2", 60.0)
    assert not await state.leases.claim(second, "sandbox-1", 60.0)
    assert await state.leases.claim(second, "sandbox-2", 60.0)


async def test_a_bucket_gives_its_burst_and_then_says_how_long_to_wait(state: SharedState) -> None:
    takes = [state.rates.take("t", count=1, per_s=0.01, burst=3) for _ in range(10)]
    waits = await asyncio.gather(*takes)
    assert sorted(waits)[:3] == [0.0, 0.0, 0.0]
    assert all(90 < wait <= 100 for wait in sorted(waits)[3:])


async def test_a_bucket_fills_again_with_time_but_not_above_its_burst(state: SharedState) -> None:
    async def take() -> bool:
        return await state.rates.take("t", count=2, per_s=50, burst=2) == 0.0

    assert await take()
    assert await state.rates.take("t", count=2, per_s=0.01, burst=2) > 0.0
    await until(take)
    await asyncio.sleep(0.2)
    assert await state.rates.take("t", count=3, per_s=0.01, burst=2) > 0.0


async def test_of_many_entries_at_once_exactly_as_many_as_fit_get_in(state: SharedState) -> None:
    asked = await asyncio.gather(
        *(state.ledgers.hold("t", f"s{n}", (1, 500), (40, 8000)) for n in range(100))
    )
    assert asked.count(None) == 16
    full = next(one for one in asked if one)
    assert (full.index, full.used, full.limit) == (1, 8000, 8000)
    assert (await state.ledgers.read("t")).totals == (16, 8000)


async def test_an_entry_counts_once_and_a_removal_gives_its_room_back_once(state: SharedState) -> None:
    for _ in range(3):
        assert await state.ledgers.hold("t", "s", (1, 10), (1, 10)) is None
    await state.ledgers.drop("t", "s")
    await state.ledgers.drop("t", "s")
    assert await state.ledgers.hold("t", "other", (1, 10), (1, 10)) is None
    assert (await state.ledgers.read("t")).entries == {"other": (1, 10)}


async def test_an_entry_that_shrinks_is_never_refused(state: SharedState) -> None:
    await state.ledgers.hold("t", "s", (1, 10), NONE)
    assert await state.ledgers.hold("t", "s", (1, 8), (0, 5)) is None
    assert (await state.ledgers.read("t")).totals == (1, 8)


async def test_settling_makes_the_entries_those_that_stand(state: SharedState) -> None:
    await state.ledgers.hold("t", "gone", (1, 1), NONE)
    await state.ledgers.hold("t", "stays", (1, 2), NONE)
    await asyncio.sleep(0.02)
    await state.ledgers.settle("t", {"stays": (1, 2), "found": (1, 4)}, age_s=0.0, grace_s=0.0)
    ledger = await state.ledgers.read("t")
    assert ledger.entries == {"stays": (1, 2), "found": (1, 4)}
    assert ledger.totals == (2, 6)


async def test_settling_keeps_what_is_only_coming_up_and_revives_nothing_that_was_removed(
    state: SharedState,
) -> None:
    await state.ledgers.hold("t", "coming", (1, 1), NONE)
    await state.ledgers.hold("t", "removed", (1, 1), NONE)
    await state.ledgers.drop("t", "removed")
    await state.ledgers.settle("t", {"removed": (1, 1)}, age_s=5.0, grace_s=60.0)
    assert (await state.ledgers.read("t")).entries == {"coming": (1, 1)}


async def test_settling_ten_thousand_is_one_step(state: SharedState) -> None:
    standing = {f"s{n}": (1, n) for n in range(10_000)}
    await state.ledgers.settle("t", standing, age_s=0.0, grace_s=0.0)
    assert (await state.ledgers.read("t")).totals == (10_000, sum(range(10_000)))


async def test_a_table_is_read_back_byte_for_byte_and_each_change_has_a_version(state: SharedState) -> None:
    assert await state.tables.version("keys") == 0
    await state.tables.put("keys", {"a": b"\x00\xff|\n"})
    first = await state.tables.version("keys")
    await state.tables.put("keys", {"b": b"2"})
    await state.tables.remove("keys", "b")
    table = await state.tables.read("keys")
    assert table.rows == {"a": b"\x00\xff|\n"}
    assert table.version == await state.tables.version("keys") != first


async def test_whoever_listens_hears_each_message_and_every_change_of_a_table(state: SharedState) -> None:
    async with (
        aclosing(state.topics.listen("drain")) as drains,
        aclosing(state.topics.listen("table:keys")) as tables,
    ):
        assert await anext(drains) is None
        assert await anext(tables) is None
        for number in range(20):
            await state.topics.publish("drain", str(number).encode())
        await state.tables.put("keys", {"a": b"1"})
        assert [await anext(drains) for _ in range(20)] == [str(number).encode() for number in range(20)]
        assert await anext(tables) is not None


async def test_a_replica_is_alive_while_it_beats(state: SharedState) -> None:
    await state.replicas.beat("a", b"version 3", 60.0)
    await state.replicas.beat("b", b"", 0.05)
    await state.replicas.beat("c", b"", 60.0)
    await state.replicas.leave("c")
    assert (await state.replicas.alive())["a"] == b"version 3"

    async def only_a() -> bool:
        return set(await state.replicas.alive()) == {"a"}

    await until(only_a)


@pytest.mark.parametrize("name", ["", "a b", "ü", "a:b|c\n"])
async def test_names_are_kept_apart_whatever_they_are(state: SharedState, name: str) -> None:
    await state.ledgers.hold("t", name, (1,), (-1,))
    taken = await state.leases.take(name, name, 60.0)
    assert (await state.ledgers.read("t")).entries == {name: (1,)}
    assert taken is not None
    assert await state.leases.current(name) == taken


async def test_what_gave_no_sign_of_life_for_long_is_silent_until_it_gives_one_or_is_forgotten(
    state: SharedState,
) -> None:
    for name in ("silent", "speaks", "gone"):
        await state.beats.beat(name)

    async def all_silent() -> bool:
        return set(await state.beats.silent(0.05)) == {"silent", "speaks", "gone"}

    await until(all_silent)
    await state.beats.beat("speaks")
    await state.beats.forget("gone")
    assert await state.beats.silent(60.0) == []
    assert "silent" in await state.beats.silent(0.05)
    assert "gone" not in await state.beats.silent(0.0)
