"""Redis is killed, stops answering, is full, or refuses the service; and comes back."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
from orchard_env.service.state.degrading import DegradingState
from orchard_env.service.state.redis.settings import RedisSettings
from orchard_env.service.state.redis.state import RedisState
from orchard_env.service.state.values import StateUnavailable

from orchard_core import ConfigError

from ..redis_server import PASSWORD, RedisServer
from .test_contract import until

NONE = (-1,)


@pytest.fixture
async def state(redis_server: RedisServer) -> AsyncIterator[DegradingState]:
    state = DegradingState(RedisState(redis_server.settings()))
    yield state
    await state.close()


async def shared(state: DegradingState) -> None:
    async def back() -> bool:
        return state.health().shared

    await until(back)


async def test_a_killed_server_is_told_and_comes_back_by_itself(
    redis_server: RedisServer, state: DegradingState
) -> None:
    await state.ledgers.hold("t", "s1", (1,), NONE)
    redis_server.kill()
    await state.ledgers.hold("t", "s2", (1,), NONE)
    assert not state.health().shared
    assert state.health().detail
    redis_server.start()
    await shared(state)
    assert state.health().detail == ""
    assert state.health().generation == 1


async def test_what_was_entered_and_removed_meanwhile_is_paid_when_the_server_is_back(
    redis_server: RedisServer, state: DegradingState
) -> None:
    await state.ledgers.hold("t", "before", (1,), NONE)
    await state.ledgers.hold("t", "ends", (1,), NONE)
    redis_server.kill()
    await state.ledgers.hold("t", "meanwhile", (1,), NONE)
    await state.ledgers.drop("t", "ends")
    redis_server.start()
    await shared(state)
    other = RedisState(redis_server.settings())
    assert set((await other.ledgers.read("t")).entries) == {"before", "meanwhile"}
    await other.close()


async def test_limits_go_on_while_the_server_is_away(
    redis_server: RedisServer, state: DegradingState
) -> None:
    await state.ledgers.hold("t", "s0", (1,), (5,))
    redis_server.kill()
    asked = await asyncio.gather(*(state.ledgers.hold("t", f"s{n}", (1,), (5,)) for n in range(1, 20)))
    assert asked.count(None) == 4
    takes = await asyncio.gather(*(state.rates.take("t", count=1, per_s=0.001, burst=6) for _ in range(20)))
    assert takes.count(0.0) == 6


async def test_alone_a_replica_gives_its_share_of_a_rate(
    redis_server: RedisServer, state: DegradingState
) -> None:
    for replica in ("a", "b", "c"):
        await state.replicas.beat(replica, b"", 60.0)
    redis_server.kill()
    takes = await asyncio.gather(*(state.rates.take("t", count=1, per_s=0.001, burst=6) for _ in range(20)))
    assert takes.count(0.0) == 2
    assert set(await state.replicas.alive()) == {"a", "b", "c"}


async def test_nobody_gets_a_lease_while_the_server_is_away(
    redis_server: RedisServer, state: DegradingState
) -> None:
    held = await state.leases.take("reap", "a", 60.0)
    assert held is not None
    redis_server.kill()
    with pytest.raises(StateUnavailable):
        await state.leases.take("reap", "a", 60.0)
    with pytest.raises(StateUnavailable):
        await state.leases.claim(held, "sandbox", 60.0)


async def test_a_server_that_forgot_its_leases_gives_the_next_one_a_larger_fence(
    redis_server: RedisServer, state: DegradingState
) -> None:
    first = await state.leases.take("reap", "a", 60.0)
    assert first is not None
    redis_server.kill()
    redis_server.start()

    async def second() -> bool:
        try:
            return await state.leases.take("reap", "b", 60.0) is not None
        except StateUnavailable:
            return False

    await until(second)
    current = await state.leases.current("reap")
    assert current is not None
    assert current.fence > first.fence
    assert not await state.leases.claim(first, "sandbox", 60.0), "the first holder still thinks it has it"


async def test_a_server_that_forgot_everything_unnoticed_is_noticed_by_a_heartbeat(
    redis_server: RedisServer, state: DegradingState
) -> None:
    await state.replicas.beat("a", b"", 60.0)
    await state.ledgers.hold("t", "s", (1,), NONE)
    redis_server.ask("FLUSHALL")
    assert (await state.ledgers.read("t")).entries == {}
    await state.replicas.beat("a", b"", 60.0)
    assert state.health().generation == 1
    assert (await state.ledgers.read("t")).entries == {"s": (1,)}


async def test_the_last_copy_of_a_table_serves_and_a_change_is_refused(
    redis_server: RedisServer, state: DegradingState
) -> None:
    await state.tables.put("keys", {"a": b"1"})
    table = await state.tables.read("keys")
    redis_server.kill()
    assert await state.tables.read("keys") == table
    assert await state.tables.version("keys") == table.version
    with pytest.raises(StateUnavailable, match="away"):
        await state.tables.put("keys", {"b": b"2"})


async def test_a_server_that_forgot_a_table_has_it_back_before_it_counts_as_back(
    redis_server: RedisServer, state: DegradingState
) -> None:
    await state.tables.put("keys", {"a": b"1", "b": b"\x00|"})
    redis_server.kill()
    await state.ledgers.hold("t", "s", (1,), NONE)
    redis_server.start()
    await shared(state)
    other = RedisState(redis_server.settings())
    assert (await other.tables.read("keys")).rows == {"a": b"1", "b": b"\x00|"}
    await other.close()


async def test_a_table_that_was_written_anew_is_not_replaced_by_an_old_copy(
    redis_server: RedisServer, state: DegradingState
) -> None:
    await state.replicas.beat("a", b"", 60.0)
    await state.tables.put("keys", {"a": b"old"})
    redis_server.ask("FLUSHALL")
    other = RedisState(redis_server.settings())
    await other.tables.put("keys", {"a": b"new"})
    await state.replicas.beat("a", b"", 60.0)
    assert state.health().generation == 1
    assert (await state.tables.read("keys")).rows == {"a": b"new"}
    await other.close()


async def test_a_call_that_fails_late_says_nothing_of_a_server_that_came_back_meanwhile(
    redis_server: RedisServer,
) -> None:
    state = RedisState(redis_server.settings(timeout_s=60.0))
    await state.replicas.beat("a", b"", 60.0)
    early = asyncio.create_task(state.link.call("BLPOP", "nothing", 0))

    async def waits() -> bool:
        return "cmd=blpop" in redis_server.ask("CLIENT", "LIST")

    await until(waits)
    redis_server.ask("FLUSHALL")
    await state.replicas.beat("a", b"", 60.0)
    assert state.health().generation == 1
    redis_server.ask("CLIENT", "KILL", "TYPE", "normal")
    with pytest.raises(StateUnavailable):
        await early
    assert state.health().shared
    await state.close()


async def test_a_listener_hears_again_after_the_server_was_killed(
    redis_server: RedisServer, state: DegradingState
) -> None:
    async with aclosing(state.topics.listen("drain")) as heard:
        assert await anext(heard) is None
        redis_server.kill()
        await state.topics.publish("drain", b"nobody hears this")
        redis_server.start()
        assert await asyncio.wait_for(anext(heard), 30) is None, "something may have been missed"
        await shared(state)
        await state.topics.publish("drain", b"again")
        assert await asyncio.wait_for(anext(heard), 30) == b"again"


async def test_a_server_that_is_full_is_told_as_such_and_nothing_is_half_entered(
    redis_server: RedisServer, state: DegradingState
) -> None:
    await state.ledgers.hold("t", "before", (1,), NONE)
    redis_server.ask("CONFIG", "SET", "maxmemory", "1")
    assert await state.ledgers.hold("t", "during", (1,), (2,)) is None
    assert "its memory is full" in state.health().detail
    assert await state.ledgers.hold("t", "third", (1,), (2,)) is not None
    await state.ledgers.drop("t", "before")
    redis_server.ask("CONFIG", "SET", "maxmemory", "0")
    await shared(state)
    ledger = await state.ledgers.read("t")
    assert (ledger.entries, ledger.totals) == ({"during": (1,)}, (1,))
    assert redis_server.ask("HGET", "{orchard}:totals:t", "1") == "1"


async def test_a_server_that_does_not_answer_holds_a_call_no_longer_than_set(
    redis_server: RedisServer,
) -> None:
    state = DegradingState(RedisState(redis_server.settings(timeout_s=0.2)))
    await state.ledgers.hold("t", "before", (1,), NONE)
    redis_server.send(signal.SIGSTOP)
    async with asyncio.timeout(20):
        for number in range(1000):
            await state.ledgers.hold("t", f"s{number}", (1,), NONE)
    assert "no answer" in state.health().detail
    redis_server.send(signal.SIGCONT)
    await shared(state)
    assert (await state.ledgers.read("t")).totals == (1001,)
    await state.close()


@pytest.mark.parametrize(("password", "words"), [("wrong", "refuses the password"), (None, "password")])
async def test_a_server_that_lets_nobody_in_is_told_without_the_password(
    redis_server: RedisServer, password: str | None, words: str
) -> None:
    state = RedisState(redis_server.settings(password=password))
    with pytest.raises(StateUnavailable, match=words) as refused:
        await state.tables.read("keys")
    assert PASSWORD not in str(refused.value)
    await state.close()


async def test_a_password_shows_neither_in_the_settings_nor_in_an_error(redis_server: RedisServer) -> None:
    settings = RedisSettings.model_validate({"url": f"redis://:{PASSWORD}@127.0.0.1:1/0"})
    state = RedisState(settings)
    with pytest.raises(StateUnavailable) as away:
        await state.tables.read("keys")
    assert PASSWORD not in f"{away.value} {settings!r} {settings} {state.health()}"
    await state.close()


def test_a_url_that_is_none_is_refused_without_being_repeated() -> None:
    with pytest.raises(ConfigError, match="begins with") as wrong:
        RedisSettings.of(f"http://:{PASSWORD}@host")
    assert PASSWORD not in str(wrong.value)


async def test_after_the_server_was_away_nobody_is_called_silent_for_what_was_not_heard(
    redis_server: RedisServer, state: DegradingState
) -> None:
    await state.beats.beat("sandbox")
    redis_server.send(signal.SIGSTOP)
    redis_server.kill()
    await state.beats.beat("sandbox")
    with pytest.raises(StateUnavailable):
        await state.beats.silent(0.0)
    redis_server.start()
    await shared(state)
    await state.beats.beat("sandbox")
    await asyncio.sleep(0.01)
    assert await state.beats.silent(60.0) == []
    assert await state.beats.silent(0.0) == ["sandbox"]
