"""What a state remembers of what is gone is bounded."""

from __future__ import annotations

from orchard_env.service.state.degrading import DegradingLedgers
from orchard_env.service.state.ledger_book import FORGOTTEN_S, LedgerBook
from orchard_env.service.state.memory import MemoryRates, MemoryState
from orchard_env.service.state.redis.state import RedisState

from ..redis_server import RedisServer

NONE = (-1,)


def test_removals_are_forgotten_though_nobody_settles() -> None:
    book = LedgerBook()
    for second in range(10_000):
        book.hold(f"s{second}", (1,), NONE, float(second))
        book.drop(f"s{second}", float(second))
        book.drop("again", float(second))
    assert book.removals <= FORGOTTEN_S + 1


async def test_redis_forgets_removals_though_nobody_settles(redis_server: RedisServer) -> None:
    state = RedisState(redis_server.settings())
    await state.ledgers.drop("t", "early")
    (key,) = [key for key in redis_server.ask("keys", "*").splitlines() if "dropped" in key]
    redis_server.ask("zadd", key, "1", "long-ago")
    await state.ledgers.drop("t", "late")
    assert redis_server.ask("zrange", key, "0", "-1").splitlines() == ["early", "late"]
    await state.close()


async def test_buckets_that_are_full_again_are_forgotten() -> None:
    now = 0.0
    rates = MemoryRates(lambda: now)
    for second in range(10_000):
        now = float(second)
        assert await rates.take(f"b{second}", count=1, per_s=1.0, burst=10) == 0.0
        await rates.take("busy", count=1, per_s=0.001, burst=1)
    assert len(rates) < 2000
    assert await rates.take("busy", count=1, per_s=0.001, burst=1) > 0.0


async def test_what_is_owed_to_a_store_that_stays_away_is_bounded(redis_server: RedisServer) -> None:
    shared = RedisState(redis_server.settings())
    ledgers = DegradingLedgers(shared, MemoryState(), most=3)
    redis_server.kill()
    for number in range(10):
        await ledgers.drop("t", f"s{number}")
    assert ledgers.owed == 3
    await shared.close()
