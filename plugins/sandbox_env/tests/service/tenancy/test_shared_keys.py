"""Keys in Redis: known to every replica, and not lost when Redis forgets."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable

import orjson
import pytest
from orchard_env.service.faults import KeyRefused
from orchard_env.service.presence import Presence
from orchard_env.service.state.contract import SharedState
from orchard_env.service.state.open import open_state
from orchard_env.service.state.values import StateUnavailable
from orchard_env.service.tenancy.books import NOTE_FIELD, SharedBook, Spread
from orchard_env.service.tenancy.issuing import create_key, revoke_key
from orchard_env.service.tenancy.keyed import KeyedTenancy
from orchard_env.service.tenancy.shared_keys import TABLE, SharedKeys

from orchard_core import ServiceOverloaded

from ..redis_server import RedisServer


@pytest.fixture
async def state(redis_server: RedisServer) -> AsyncIterator[SharedState]:
    state = open_state(redis_server.settings())
    yield state
    await state.close()


async def until(look: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not look():
            await asyncio.sleep(0.01)


async def test_when_redis_forgets_replicas_write_back_what_they_know_and_nothing_revoked_comes_back(
    redis_server: RedisServer, state: SharedState
) -> None:
    book = SharedBook(state)
    good, bad = await create_key(book, "alice"), await create_key(book, "alice")
    late, fresh = SharedKeys(state), SharedKeys(state)
    await late.start()
    await late.close()  # it will know nothing of the revocation
    await revoke_key(book, bad.record.id)
    await fresh.start()
    redis_server.ask("FLUSHALL")
    await fresh.close()
    await late.start()
    await fresh.start()
    await until(lambda: late.index.keys[bad.record.id].revoked is not None)
    again = SharedKeys(state)
    await again.start()
    tenancy = KeyedTenancy(again, state)
    assert (await tenancy.identify(good.text)).name == "alice"
    with pytest.raises(KeyRefused, match="revoked"):
        await tenancy.identify(bad.text)
    for keys in (late, fresh, again):
        await keys.close()


async def test_keys_stay_good_while_redis_is_away_and_changes_are_refused_not_lost(
    redis_server: RedisServer, state: SharedState
) -> None:
    book = SharedBook(state)
    issued = await create_key(book, "alice")
    keys = SharedKeys(state)
    await keys.start()
    redis_server.kill()
    assert (await KeyedTenancy(keys, state).identify(issued.text)).name == "alice"
    with pytest.raises(StateUnavailable, match="away"):
        await revoke_key(book, issued.record.id)
    redis_server.start()
    # What it forgot, this replica knew.
    await until(lambda: redis_server.ask("HLEN", "{orchard}:table:access") == "1")
    await revoke_key(book, issued.record.id)
    await until(lambda: keys.index.keys[issued.record.id].revoked is not None)
    await keys.close()


async def test_a_replica_that_starts_without_redis_says_so_and_knows_its_keys_when_it_is_there(
    redis_server: RedisServer, state: SharedState
) -> None:
    issued = await create_key(SharedBook(state), "alice")
    redis_server.send(signal.SIGSTOP)
    other = open_state(redis_server.settings(timeout_s=0.1))
    keys = SharedKeys(other)
    await keys.start()
    tenancy = KeyedTenancy(keys, other)
    with pytest.raises(ServiceOverloaded, match="has not read its keys yet"):
        await tenancy.identify(issued.text)
    assert keys.fault
    redis_server.send(signal.SIGCONT)
    await until(lambda: not keys.fault)
    assert (await tenancy.identify(issued.text)).name == "alice"
    await keys.close()
    await other.close()


async def test_a_replica_that_finds_a_store_without_keys_calls_nobodys_key_wrong(
    redis_server: RedisServer, state: SharedState
) -> None:
    issued = await create_key(SharedBook(state), "alice")
    kept = SharedKeys(state)
    await kept.start()
    await kept.close()
    redis_server.ask("FLUSHALL")
    late = SharedKeys(state)
    await late.start()
    with pytest.raises(ServiceOverloaded, match="holds none"):
        await KeyedTenancy(late, state).identify(issued.text)
    assert late.fault
    await kept.start()  # it writes back what it knows
    await until(lambda: not late.fault)
    assert (await KeyedTenancy(late, state).identify(issued.text)).name == "alice"
    for keys in (kept, late):
        await keys.close()


async def test_a_revocation_waits_until_every_live_replica_goes_by_it(
    redis_server: RedisServer, state: SharedState
) -> None:
    book = SharedBook(state)
    issued = await create_key(book, "alice")
    keys = SharedKeys(state, loaded=lambda _: presence.beat())
    presence = Presence(state, "a", lambda: {NOTE_FIELD: keys.version})
    await keys.start()
    await presence.start()
    await revoke_key(book, issued.record.id)
    assert await book.spread(30.0) == Spread(replicas=1, of=1)
    assert keys.index.keys[issued.record.id].revoked is not None
    # One that hangs keeps its note of before.
    await state.replicas.beat("hangs", orjson.dumps({NOTE_FIELD: 1}), 60.0)
    await state.replicas.beat("older", b"no note of ours", 60.0)
    assert await book.spread(0.0) == Spread(replicas=1, of=3)
    await presence.close()
    assert set(await state.replicas.alive()) == {"hangs", "older"}
    await keys.close()


async def test_a_row_that_is_broken_counts_for_nothing_and_the_rest_is_read(
    redis_server: RedisServer, state: SharedState
) -> None:
    issued = await create_key(SharedBook(state), "alice")
    await state.tables.put(TABLE, {"key:broken": b"{"})
    keys = SharedKeys(state)
    await keys.start()
    assert set(keys.index.keys) == {issued.record.id}
    await keys.close()
