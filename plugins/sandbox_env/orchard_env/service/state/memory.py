"""The shared state of a service that is one process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field

from orchard_env.service.state.ledger_book import LedgerBook
from orchard_env.service.state.values import Amounts, Full, Lease, Ledger, StateHealth, Table

Clock = Callable[[], float]
"""Seconds that only grow."""


@dataclass(slots=True)
class _Held:
    lease: Lease
    until: float


class MemoryLeases:
    """Leases of this process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._held: dict[str, _Held] = {}
        self._claimed: dict[tuple[str, str], tuple[int, float]] = {}
        self._fence = int(time.time() * 1000)

    async def take(self, name: str, holder: str, ttl_s: float) -> Lease | None:
        """As Leases."""
        held = await self._live(name)
        if held is None:
            self._fence += 1
            held = self._held[name] = _Held(Lease(name=name, holder=holder, fence=self._fence), 0.0)
        if held.lease.holder != holder:
            return None
        held.until = self._clock() + ttl_s
        return held.lease

    async def drop(self, lease: Lease) -> None:
        """As Leases."""
        if await self.current(lease.name) == lease:
            del self._held[lease.name]

    async def current(self, name: str) -> Lease | None:
        """As Leases."""
        held = await self._live(name)
        return held.lease if held else None

    async def claim(self, lease: Lease, item: str, ttl_s: float) -> bool:
        """As Leases."""
        now = self._clock()
        if await self.current(lease.name) != lease:
            return False
        fence, until = self._claimed.get((lease.name, item), (lease.fence, now))
        if fence != lease.fence and until > now:
            return False
        self._claimed = {key: claim for key, claim in self._claimed.items() if claim[1] > now}
        self._claimed[lease.name, item] = (lease.fence, now + ttl_s)
        return True

    async def _live(self, name: str) -> _Held | None:
        held = self._held.get(name)
        return held if held and held.until > self._clock() else None


_SWEPT = 1024


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float
    full_at: float = 0.0


class MemoryRates:
    """Token buckets of this process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._buckets: dict[str, _Bucket] = {}
        self._sweep_beyond = _SWEPT

    def __len__(self) -> int:
        return len(self._buckets)

    async def take(self, bucket: str, *, count: float, per_s: float, burst: float) -> float:
        """As Rates."""
        now = self._clock()
        found = self._buckets.setdefault(bucket, _Bucket(burst, now))
        found.tokens = min(burst, found.tokens + (now - found.at) * per_s)
        found.at = now
        wait = (count - found.tokens) / per_s if found.tokens < count else 0.0
        found.tokens -= 0.0 if wait else count
        found.full_at = now + (burst - found.tokens) / per_s
        if len(self._buckets) > self._sweep_beyond:
            self._sweep(now)
        return wait

    def _sweep(self, now: float) -> None:
        """A bucket that is full again is as good as none."""
        self._buckets = {name: one for name, one in self._buckets.items() if one.full_at > now}
        self._sweep_beyond = max(_SWEPT, 2 * len(self._buckets))


class MemoryLedgers:
    """Ledgers of this process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._books: dict[str, LedgerBook] = {}

    def book(self, ledger: str) -> LedgerBook:
        """The book of a ledger."""
        return self._books.setdefault(ledger, LedgerBook())

    def made_within(self, seconds: float) -> dict[str, dict[str, Amounts]]:
        """By ledger, the entries made or changed in the last `seconds`."""
        since = self._clock() - seconds
        return {ledger: book.made_since(since) for ledger, book in self._books.items()}

    async def hold(self, ledger: str, entry: str, amounts: Amounts, limits: Amounts) -> Full | None:
        """As Ledgers."""
        return self.book(ledger).hold(entry, amounts, limits, self._clock())

    async def drop(self, ledger: str, entry: str) -> None:
        """As Ledgers."""
        self.book(ledger).drop(entry, self._clock())

    async def settle(
        self, ledger: str, standing: Mapping[str, Amounts], *, age_s: float, grace_s: float
    ) -> None:
        """As Ledgers."""
        self.book(ledger).settle(standing, self._clock() - age_s, grace_s)

    async def read(self, ledger: str) -> Ledger:
        """As Ledgers."""
        return self.book(ledger).read()


class MemoryTopics:
    """Events within this process."""

    def __init__(self) -> None:
        self._listeners: dict[str, set[asyncio.Queue[bytes]]] = {}

    async def publish(self, topic: str, message: bytes) -> None:
        """As Topics."""
        for queue in self._listeners.get(topic, ()):
            queue.put_nowait(message)

    async def listen(self, topic: str) -> AsyncGenerator[bytes | None, None]:
        """As Topics; nothing is ever missed."""
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        listeners = self._listeners.setdefault(topic, set())
        listeners.add(queue)
        try:
            yield None
            while True:
                yield await queue.get()
        finally:
            listeners.discard(queue)
            if not listeners and self._listeners.get(topic) is listeners:
                del self._listeners[topic]


class MemoryTables:
    """Tables of this process."""

    def __init__(self, topics: MemoryTopics) -> None:
        self._topics = topics
        self._tables: dict[str, Table] = {}

    async def put(self, table: str, rows: Mapping[str, bytes]) -> None:
        """As Tables."""
        if rows:
            await self._change(table, {**self._table(table).rows, **rows})

    async def remove(self, table: str, key: str) -> None:
        """As Tables."""
        await self._change(table, {name: row for name, row in self._table(table).rows.items() if name != key})

    async def read(self, table: str) -> Table:
        """As Tables."""
        return self._table(table)

    async def version(self, table: str) -> int:
        """As Tables."""
        return self._table(table).version

    def _table(self, table: str) -> Table:
        return self._tables.get(table, Table(version=0, rows={}))

    async def _change(self, table: str, rows: Mapping[str, bytes]) -> None:
        self._tables[table] = Table(version=self._table(table).version + 1, rows=rows)
        await self._topics.publish(f"table:{table}", b"")


class MemoryReplicas:
    """Replicas within this process, such as those of a test."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._alive: dict[str, tuple[bytes, float]] = {}

    async def beat(self, replica: str, note: bytes, ttl_s: float) -> None:
        """As Replicas."""
        self._alive[replica] = (note, self._clock() + ttl_s)

    async def leave(self, replica: str) -> None:
        """As Replicas."""
        self._alive.pop(replica, None)

    async def alive(self) -> Mapping[str, bytes]:
        """As Replicas."""
        now = self._clock()
        return {replica: note for replica, (note, until) in self._alive.items() if until > now}


class MemoryBeats:
    """Signs of life that this process heard."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last: dict[str, float] = {}

    async def beat(self, name: str) -> None:
        """As Beats."""
        self._last[name] = self._clock()

    async def forget(self, name: str) -> None:
        """As Beats."""
        self._last.pop(name, None)

    async def silent(self, limit_s: float) -> list[str]:
        """As Beats."""
        now = self._clock()
        return [name for name, last in self._last.items() if now - last > limit_s]


@dataclass(slots=True)
class MemoryState:
    """All of it, in this process's memory."""

    clock: Clock = time.monotonic
    """What leases and buckets are measured by."""
    leases: MemoryLeases = field(init=False)
    rates: MemoryRates = field(init=False)
    ledgers: MemoryLedgers = field(init=False)
    topics: MemoryTopics = field(init=False)
    tables: MemoryTables = field(init=False)
    replicas: MemoryReplicas = field(init=False)
    beats: MemoryBeats = field(init=False)

    def __post_init__(self) -> None:
        self.leases = MemoryLeases(self.clock)
        self.rates = MemoryRates(self.clock)
        self.ledgers = MemoryLedgers(self.clock)
        self.topics = MemoryTopics()
        self.tables = MemoryTables(self.topics)
        self.replicas = MemoryReplicas(self.clock)
        self.beats = MemoryBeats(self.clock)

    def health(self) -> StateHealth:
        """Nothing is shared, and nothing is wrong."""
        return StateHealth(shared=False)

    async def close(self) -> None:
        """Nothing to let go of."""
