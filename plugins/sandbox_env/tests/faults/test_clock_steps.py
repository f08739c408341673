"""What a Redis holds whose wall clock has stepped by hours, and a replica that reads it: who is alive stays,
who is dead goes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from orchard_env.service.state.redis.state import RedisState

from ..service.redis_server import RedisServer
from ..service.redis_server import redis_server as redis_server

HOURS_6_MS = 6 * 3600 * 1000
BEATS, LEASE = "{orchard}:beats", "{orchard}:lease:reap"


@pytest.fixture
async def state(redis_server: RedisServer) -> AsyncIterator[RedisState]:
    """A replica's."""
    made = RedisState(redis_server.settings())
    yield made
    await made.close()


def beat_at(redis: RedisServer, offset_ms: int) -> None:
    """A heartbeat written when the clock told another time."""
    redis.ask("ZADD", BEATS, str(round(time.time() * 1000) + offset_ms), "box")


async def until(look: Callable[[], Awaitable[bool]]) -> None:
    """Until it is so."""
    async with asyncio.timeout(60):
        while not await look():
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("offset_ms", [-HOURS_6_MS, HOURS_6_MS], ids=["forward", "back"])
async def test_a_heartbeat_from_before_a_step_is_no_silence_but_silence_after_it_is(
    redis_server: RedisServer, state: RedisState, offset_ms: int
) -> None:
    beat_at(redis_server, offset_ms)
    for _ in range(3):
        assert await state.beats.silent(3600.0) == []

    async def noticed() -> bool:
        return await state.beats.silent(0.05) == ["box"]

    await until(noticed)


async def test_a_lease_of_hours_that_a_step_back_made_is_cut_to_what_anybody_asks_for(
    redis_server: RedisServer, state: RedisState
) -> None:
    held = await state.leases.take("reap", "dead", 60.0)
    assert held is not None
    assert redis_server.ask("PEXPIRE", LEASE, str(HOURS_6_MS)) == "1"
    assert await state.leases.take("reap", "heir", 0.5) is None
    taken = None

    async def inherited() -> bool:
        nonlocal taken
        taken = await state.leases.take("reap", "heir", 0.5)
        return taken is not None

    await until(inherited)
    assert taken is not None
    assert taken.fence > held.fence
    assert not await state.leases.claim(held, "box", 60.0)
