"""The shared state of a replica that goes on when the store is away.

Limits go on by what this replica knows, its copies of tables serve, and what it entered or removed meanwhile
is entered or removed when the store is back. Leases do not go on: nobody can say that nobody else has one.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress

from orchard_env.service.state.contract import Leases, Topics
from orchard_env.service.state.memory import MemoryState
from orchard_env.service.state.redis.replicas import RedisReplicas
from orchard_env.service.state.redis.state import RedisState
from orchard_env.service.state.values import Amounts, Full, Ledger, StateHealth, StateUnavailable, Table

OWED_MAX = 50_000
"""Changes that are remembered for a store that is away; what was older is found when what stands is looked
through, which every tenant's next creation does once the store is back."""

RECENT_S = 120.0
"""What was entered so lately may be in nobody's list of sandboxes, so this replica enters it again."""


class DegradingRates:
    """As Rates; alone, each replica gives its share of the rate."""

    def __init__(self, shared: RedisState, local: MemoryState, replicas: DegradingReplicas) -> None:
        self._shared = shared
        self._local = local
        self._replicas = replicas

    async def take(self, bucket: str, *, count: float, per_s: float, burst: float) -> float:
        """As Rates."""
        try:
            return await self._shared.rates.take(bucket, count=count, per_s=per_s, burst=burst)
        except StateUnavailable:
            share = 1 / max(1, self._replicas.last_count)
            largest = max(count, burst * share)
            return await self._local.rates.take(bucket, count=count, per_s=per_s * share, burst=largest)


class DegradingLedgers:
    """As Ledgers; alone, by the entries that this replica made and those that were seen standing."""

    def __init__(self, shared: RedisState, local: MemoryState, most: int = OWED_MAX) -> None:
        self._shared = shared
        self._local = local
        self._most = most
        self._owed: dict[tuple[str, str], Amounts | None] = {}

    @property
    def owed(self) -> int:
        """Changes that the store is yet to be told."""
        return len(self._owed)

    async def hold(self, ledger: str, entry: str, amounts: Amounts, limits: Amounts) -> Full | None:
        """As Ledgers."""
        try:
            full = await self._shared.ledgers.hold(ledger, entry, amounts, limits)
        except StateUnavailable:
            full = await self._local.ledgers.hold(ledger, entry, amounts, limits)
            # A refused entry may have arrived all the same, when only the answer was lost.
            self._owe(ledger, entry, None if full else amounts)
            return full
        if full is None:
            await self._local.ledgers.hold(ledger, entry, amounts, (-1,) * len(amounts))
        return full

    async def drop(self, ledger: str, entry: str) -> None:
        """As Ledgers."""
        await self._local.ledgers.drop(ledger, entry)
        try:
            await self._shared.ledgers.drop(ledger, entry)
        except StateUnavailable:
            self._owe(ledger, entry, None)

    def _owe(self, ledger: str, entry: str, amounts: Amounts | None) -> None:
        self._owed.pop((ledger, entry), None)
        self._owed[ledger, entry] = amounts
        while len(self._owed) > self._most:
            del self._owed[next(iter(self._owed))]

    async def settle(
        self, ledger: str, standing: Mapping[str, Amounts], *, age_s: float, grace_s: float
    ) -> None:
        """As Ledgers."""
        await self._local.ledgers.settle(ledger, standing, age_s=age_s, grace_s=grace_s)
        with suppress(StateUnavailable):  # whoever settles looks at the generation, and does it again
            await self._shared.ledgers.settle(ledger, standing, age_s=age_s, grace_s=grace_s)

    async def read(self, ledger: str) -> Ledger:
        """As Ledgers."""
        try:
            return await self._shared.ledgers.read(ledger)
        except StateUnavailable:
            return await self._local.ledgers.read(ledger)

    async def pay(self) -> None:
        """Tell the store, which is back. Raises StateUnavailable."""
        # The store knew these, and has lost them unless another replica, for which it was back sooner, has
        # removed them.
        for ledger, entries in self._local.ledgers.made_within(RECENT_S).items():
            for entry, amounts in entries.items():
                if (ledger, entry) not in self._owed:
                    await self._shared.ledgers.restore(ledger, entry, amounts, unless_dropped=True)
        while self._owed:
            (ledger, entry), owed = next(iter(self._owed.items()))
            await self._shared.ledgers.restore(ledger, entry, owed)
            # It may have changed again meanwhile.
            if self._owed.get((ledger, entry), owed) == owed:
                self._owed.pop((ledger, entry), None)


class DegradingTables:
    """As Tables; alone, the last copies are read, and nothing can be written. A store that comes back without
    a table is given the copy."""

    def __init__(self, shared: RedisState) -> None:
        self._shared = shared
        self._copies: dict[str, Table] = {}

    async def put(self, table: str, rows: Mapping[str, bytes]) -> None:
        """As Tables."""
        await self._shared.tables.put(table, rows)
        with suppress(StateUnavailable):
            await self.read(table)

    async def remove(self, table: str, key: str) -> None:
        """As Tables."""
        await self._shared.tables.remove(table, key)

    async def read(self, table: str) -> Table:
        """As Tables. Raises StateUnavailable only when there is no copy yet."""
        try:
            self._copies[table] = await self._shared.tables.read(table)
        except StateUnavailable:
            if table not in self._copies:
                raise
        return self._copies[table]

    async def version(self, table: str) -> int:
        """As Tables, likewise."""
        try:
            return await self._shared.tables.version(table)
        except StateUnavailable:
            if table not in self._copies:
                raise
            return self._copies[table].version

    async def give_back(self) -> None:
        """Tell the store, which is back. Raises StateUnavailable."""
        for table, copy in list(self._copies.items()):
            await self._shared.tables.restore(table, copy.rows)


class DegradingTopics:
    """As Topics; alone, nobody is told."""

    def __init__(self, shared: RedisState) -> None:
        self._shared = shared.topics

    async def publish(self, topic: str, message: bytes) -> None:
        """As Topics; listeners look for themselves when the store is back."""
        with suppress(StateUnavailable):
            await self._shared.publish(topic, message)

    def listen(self, topic: str) -> AsyncGenerator[bytes | None, None]:
        """As Topics."""
        return self._shared.listen(topic)


class DegradingReplicas:
    """As Replicas; alone, by who was alive last."""

    def __init__(self, shared: RedisReplicas) -> None:
        self._shared = shared
        self._last: Mapping[str, bytes] = {}

    @property
    def last_count(self) -> int:
        """How many were alive when it was last known."""
        return len(self._last)

    async def beat(self, replica: str, note: bytes, ttl_s: float) -> None:
        """As Replicas."""
        try:
            await self._shared.beat(replica, note, ttl_s)
            self._last = await self._shared.alive()
        except StateUnavailable:
            self._last = {**self._last, replica: note}

    async def leave(self, replica: str) -> None:
        """As Replicas."""
        with suppress(StateUnavailable):
            await self._shared.leave(replica)

    async def alive(self) -> Mapping[str, bytes]:
        """As Replicas."""
        with suppress(StateUnavailable):
            self._last = await self._shared.alive()
        return self._last


class DegradingBeats:
    """As Beats; alone, nobody is called silent."""

    def __init__(self, shared: RedisState) -> None:
        self._shared = shared.beats

    async def beat(self, name: str) -> None:
        """As Beats; a sign that is lost does no harm, because nobody is called silent for a while after."""
        with suppress(StateUnavailable):
            await self._shared.beat(name)

    async def forget(self, name: str) -> None:
        """As Beats; what is not forgotten now is when it is found to be gone."""
        with suppress(StateUnavailable):
            await self._shared.forget(name)

    async def silent(self, limit_s: float) -> list[str]:
        """As Beats."""
        return await self._shared.silent(limit_s)


class DegradingState:
    """All of it."""

    def __init__(self, shared: RedisState) -> None:
        local = MemoryState()
        self._shared = shared
        self.leases: Leases = shared.leases
        self.topics: Topics = DegradingTopics(shared)
        self.replicas = DegradingReplicas(shared.replicas)
        self.rates = DegradingRates(shared, local, self.replicas)
        self.ledgers = DegradingLedgers(shared, local)
        self.tables = DegradingTables(shared)
        self.beats = DegradingBeats(shared)
        shared.link.on_return = self._returned

    def health(self) -> StateHealth:
        """Whether the store is there."""
        return self._shared.health()

    async def close(self) -> None:
        """Close every connection."""
        await self._shared.close()

    async def _returned(self) -> None:
        # First, because a replica that starts now knows nobody before it has read the keys.
        await self.tables.give_back()
        await self.ledgers.pay()
