"""What a Redis holds whose wall clock has stepped by hours, and a replica that reads it: who is alive stays,
who is dead goes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from orchard_env.service.state.redis.state import RedisState

from orchard_core import SandboxSpec, StandingSandbox

from ..service.redis_server import RedisServer, running_redis
from ..service.redis_server import redis_server as redis_server
from ..service.standing_agents import end_all, standing_provider
from .clocks import HOUR_S, SteppedClock, built

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


async def left_s(root: Path, created_s: float, age_s: float | None) -> float:
    """What is left to a sandbox of half an hour when another process takes it over; it is said to be made so
    long ago, and to be so old."""
    first, second = standing_provider(root), standing_provider(root)
    await first.create(
        SandboxSpec.model_validate({"image": "host", "network": "host", "name": "box", "ttl_s": HOUR_S / 2})
    )
    await first.release()
    record = root / "box" / "sandbox.json"
    told = StandingSandbox.model_validate_json(record.read_bytes())
    told = told.model_copy(update={"created": told.created - created_s, "age_s": age_s})
    record.write_text(told.model_dump_json())
    try:
        sandbox = await second.adopt("box")
        while sandbox.deadline is None:
            await asyncio.sleep(0.01)
        return sandbox.deadline - time.monotonic()
    finally:
        await second.close()
        end_all(root)


async def test_who_is_taken_over_after_a_step_forward_lives_on(tmp_path: Path) -> None:
    assert await left_s(tmp_path, HOUR_S, None) > HOUR_S / 4


@pytest.mark.parametrize("created_s", [HOUR_S, -HOUR_S], ids=["forward", "back"])
async def test_who_is_known_to_be_old_is_so_whatever_the_clock_says(tmp_path: Path, created_s: float) -> None:
    assert await left_s(tmp_path, created_s, HOUR_S) < 0


@dataclass(frozen=True, kw_only=True)
class Stepping:
    """A Redis whose wall clock can really be stepped, and what a replica shares by it."""

    clock: SteppedClock
    redis: RedisServer
    state: RedisState


@pytest.fixture(scope="module")
def stepping_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SteppedClock, RedisServer]]:
    """One for all cases."""
    folder = tmp_path_factory.mktemp("clock")
    clock = SteppedClock(built(folder), folder / "ahead")
    with running_redis(clock.env) as server:
        yield clock, server


@pytest.fixture
async def stepping(stepping_redis: tuple[SteppedClock, RedisServer]) -> AsyncIterator[Stepping]:
    """Empty, and on time."""
    clock, server = stepping_redis
    clock.step_to(0)
    server.ask("FLUSHALL")
    made = RedisState(server.settings())
    yield Stepping(clock=clock, redis=server, state=made)
    await made.close()


FORWARD_AND_BACK = pytest.mark.parametrize("hours", [1, -1], ids=["forward", "back"])


@FORWARD_AND_BACK
async def test_the_clock_of_a_real_server_steps(stepping: Stepping, hours: int) -> None:
    before = int(stepping.redis.ask("TIME").split()[0])
    stepping.clock.step_to(hours * HOUR_S)
    assert abs(int(stepping.redis.ask("TIME").split()[0]) - before - hours * HOUR_S) < HOUR_S / 2


@FORWARD_AND_BACK
async def test_who_beats_through_a_step_is_not_silent_and_who_stops_is(
    stepping: Stepping, hours: int
) -> None:
    await stepping.state.beats.beat("box")
    stepping.clock.step_to(hours * HOUR_S)
    assert await stepping.state.beats.silent(HOUR_S / 2) == []
    await stepping.state.beats.beat("box")
    assert await stepping.state.beats.silent(HOUR_S / 2) == []

    async def noticed() -> bool:
        return await stepping.state.beats.silent(0.05) == ["box"]

    await until(noticed)


@FORWARD_AND_BACK
async def test_of_two_that_think_they_lead_after_a_step_only_the_later_destroys(
    stepping: Stepping, hours: int
) -> None:
    leases = stepping.state.leases
    held = await leases.take("reap", "a", HOUR_S / 2)
    assert held is not None
    stepping.clock.step_to(hours * HOUR_S)
    heir = None

    async def inherited() -> bool:
        nonlocal heir
        heir = await leases.take("reap", "b", 0.5)
        return heir is not None

    await until(inherited)
    assert heir is not None
    assert heir.fence > held.fence
    assert not await leases.claim(held, "box", 60.0)


@FORWARD_AND_BACK
async def test_what_is_counted_stays_and_what_ended_unsaid_is_counted_out(
    stepping: Stepping, hours: int
) -> None:
    ledgers = stepping.state.ledgers
    for entry in ("stands", "ended", "said"):
        await ledgers.hold("t", entry, (1,), (3,))
    await ledgers.drop("t", "said")
    stepping.clock.step_to(hours * HOUR_S)
    await ledgers.settle("t", {"stands": (1,)}, age_s=0.0, grace_s=60.0)
    assert "stands" in (await ledgers.read("t")).entries

    async def counted_out() -> bool:
        await ledgers.settle("t", {"stands": (1,)}, age_s=0.0, grace_s=0.01)
        return (await ledgers.read("t")).entries == {"stands": (1,)}

    await until(counted_out)
    assert await ledgers.hold("t", "new", (1,), (2,)) is None
    assert (await ledgers.read("t")).totals == (2,)


@FORWARD_AND_BACK
async def test_a_replica_that_died_before_a_step_is_gone_soon_after_it(
    stepping: Stepping, hours: int
) -> None:
    replicas = stepping.state.replicas
    await replicas.beat("dies", b"note|of", 0.2)
    stepping.clock.step_to(hours * HOUR_S)
    await replicas.beat("lives", b"note", 60.0)

    async def alone() -> bool:
        return await replicas.alive() == {"lives": b"note"}

    await until(alone)


@FORWARD_AND_BACK
async def test_who_spent_its_rate_waits_no_longer_for_a_step(stepping: Stepping, hours: int) -> None:
    rates = stepping.state.rates
    assert await rates.take("t", count=5, per_s=10, burst=5) == 0.0
    stepping.clock.step_to(hours * HOUR_S)
    assert await rates.take("t", count=5, per_s=10, burst=5) <= 0.5
