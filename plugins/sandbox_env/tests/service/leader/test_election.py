"""One leads, another follows it when it is gone, and no two ever do away with the same."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from orchard_env.kubernetes.grip import KubernetesGrip
from orchard_env.service.leader.contract import Alone, Grip
from orchard_env.service.leader.election import Election
from orchard_env.service.leader.lease_grip import LeaseGrip
from orchard_env.service.state.memory import MemoryState
from orchard_env.service.state.redis.state import RedisState

from ...kubernetes.clusters import real_cluster, standin
from ..redis_server import RedisServer, running_redis
from ..redis_server import redis_server as redis_server

NewGrip = Callable[[], Grip]
"""Another replica's hand on the same thing."""
BOUND_S = 60.0


@pytest.fixture(
    params=["memory", "redis", "stand-in", pytest.param("cluster", marks=pytest.mark.cluster)],
)
async def grip(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[NewGrip]:
    """Each means by which replicas agree."""
    if request.param == "memory":
        state = MemoryState()
        yield lambda: LeaseGrip(state.leases, "reap")
    elif request.param == "redis":
        with running_redis() as server:
            shared = RedisState(server.settings())
            yield lambda: LeaseGrip(shared.leases, "reap")
            await shared.close()
    elif request.param == "stand-in":
        async with standin(tmp_path) as (_, api):
            yield lambda: KubernetesGrip(api, "reap")
    else:
        async with real_cluster() as api:
            yield lambda: KubernetesGrip(api, "reap")


async def follows(grip: Grip, holder: str) -> int:
    """The term in which `holder` at last gets hold."""
    async with asyncio.timeout(BOUND_S):
        while (term := await grip.grasp(holder, 60.0)) is None:
            await asyncio.sleep(0.05)
    return term


async def test_of_many_that_grasp_at_once_one_holds(grip: NewGrip) -> None:
    terms = await asyncio.gather(*(grip().grasp(f"replica-{n}", 60.0) for n in range(8)))
    assert sum(term is not None for term in terms) == 1


async def test_who_holds_keeps_its_term_and_who_follows_has_a_later_one(grip: NewGrip) -> None:
    a, b = grip(), grip()
    first = await a.grasp("a", 1.0)
    assert first is not None
    assert await a.grasp("a", 1.0) == first
    assert await b.grasp("b", 60.0) is None
    assert await follows(b, "b") > first
    assert await a.grasp("a", 60.0) is None


async def test_who_lets_go_is_followed_at_once_and_cannot_let_go_of_anothers(grip: NewGrip) -> None:
    a, b = grip(), grip()
    first = await a.grasp("a", 60.0)
    assert first is not None
    await a.let_go("a", first)
    second = await b.grasp("b", 60.0)
    assert second is not None
    await a.let_go("a", first)
    assert await b.confirm("b", second, "sandbox", 60.0)


async def test_a_term_that_is_over_confirms_nothing(grip: NewGrip) -> None:
    a, b = grip(), grip()
    first = await a.grasp("a", 1.0)
    assert first is not None
    assert await a.confirm("a", first, "sandbox", 60.0)
    await follows(b, "b")
    assert not await a.confirm("a", first, "another sandbox", 60.0)


async def test_no_two_leaders_ever_claim_the_same_while_terms_change_hands(grip: NewGrip) -> None:
    """Leaders that are stopped between being elected and deleting, as by SIGSTOP, wake when another leads."""
    claimed: list[str] = []
    hands = {name: grip() for name in ("a", "b", "c")}
    stale: list[tuple[str, int]] = []
    for number in range(6):
        name = "abc"[number % 3]
        term = await hands[name].grasp(name, 60.0)
        assert term is not None
        items = [f"x{number}", f"y{number}"]
        claimed += [item for item in items if await hands[name].confirm(name, term, item, 60.0)]
        await hands[name].let_go(name, term)
        for woken, old in stale:
            assert not await hands[woken].confirm(woken, old, f"x{number}", 60.0)
        stale.append((name, term))
    assert len(claimed) == len(set(claimed)) == 12


class Clock:
    """Time that goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_a_replica_that_was_stopped_through_its_term_does_not_lead_when_it_wakes() -> None:
    clock = Clock()
    election = Election(LeaseGrip(MemoryState(clock).leases, "reap"), "a", ttl_s=10.0, clock=clock)
    await election.ask()
    assert await election.claim("sandbox")
    clock.now += 9.0
    assert election.term is None
    assert not await election.claim("another")


async def test_nobody_claims_while_the_store_is_away(
    redis_server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    state = RedisState(redis_server.settings())
    election = Election(LeaseGrip(state.leases, "reap"), "a", ttl_s=60.0)
    await election.ask()
    assert election.leading
    redis_server.kill()
    assert not await election.claim("sandbox")
    for _ in range(3):
        await election.ask()
    assert election.leading, "its term goes on until it runs out"
    told = [one for one in caplog.messages if one.startswith("nobody can say who leads")]
    assert len(told) == 1, "when it begins, not at every turn"
    await state.close()


async def test_replicas_that_stand_have_one_leader_and_another_when_it_stops(grip: NewGrip) -> None:
    elections = [Election(grip(), name, ttl_s=4.0) for name in ("a", "b")]

    async def leader() -> Election:
        async with asyncio.timeout(BOUND_S):
            while not any(election.leading for election in elections):
                await asyncio.sleep(0.02)
        leading = [election for election in elections if election.leading]
        assert len(leading) == 1
        return leading[0]

    for election in elections:
        await election.start()
    first = await leader()
    elections.remove(first)
    await first.stop()
    assert not await first.claim("sandbox")
    second = await leader()
    assert await second.claim("sandbox")
    await second.stop()


async def test_alone_a_replica_always_leads() -> None:
    alone = Alone()
    await alone.start()
    assert alone.leading
    assert await alone.claim("sandbox")
    await alone.stop()
