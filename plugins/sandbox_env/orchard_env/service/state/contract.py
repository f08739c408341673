"""What replicas share. No truth about sandboxes is here: all of it may be lost, and no sandbox with it.

Every call may raise StateUnavailable. Each is atomic, and the same call sent twice does no more than once,
except `Rates.take`. Times are the store's, so that the clocks of replicas do not matter.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Protocol

from orchard_env.service.state.values import Amounts, Full, Lease, Ledger, StateHealth, Table


class Leases(Protocol):
    """Who alone does something."""

    async def take(self, name: str, holder: str, ttl_s: float) -> Lease | None:
        """The lease, for `ttl_s` from now; None while another holds it. Who holds it already prolongs it and
        keeps its fence."""

    async def drop(self, lease: Lease) -> None:
        """Give it up; fine when it is another's by now."""

    async def current(self, name: str) -> Lease | None:
        """Who holds it now."""

    async def claim(self, lease: Lease, item: str, ttl_s: float) -> bool:
        """Whether this lease is still the current one and no other claimed the item in the last `ttl_s`.

        One step: of two that both think they hold the lease, at most one ever gets True for an item.
        """


class Rates(Protocol):
    """Token buckets."""

    async def take(self, bucket: str, *, count: float, per_s: float, burst: float) -> float:
        """0.0 when `count` tokens were taken, else the seconds until so many will be there; none is taken
        then. A bucket begins full, with `burst` tokens."""


class Ledgers(Protocol):
    """Sums with limits, kept as entries so that nothing counts twice and nothing is forgotten."""

    async def hold(self, ledger: str, entry: str, amounts: Amounts, limits: Amounts) -> Full | None:
        """Enter an entry (again: change it) unless a sum would pass its limit, -1 being none. None: done."""

    async def drop(self, ledger: str, entry: str) -> None:
        """Remove an entry; fine when there is none."""

    async def settle(
        self, ledger: str, standing: Mapping[str, Amounts], *, age_s: float, grace_s: float
    ) -> None:
        """Make the entries those that stand, as they were seen `age_s` ago.

        Kept all the same: entries made later than `grace_s` before that (what they count may only be coming
        up). Not entered: what was dropped since.
        """

    async def read(self, ledger: str) -> Ledger:
        """All entries and their sums."""


class Tables(Protocol):
    """Small tables that every replica keeps a copy of."""

    async def put(self, table: str, rows: Mapping[str, bytes]) -> None:
        """Set these rows, and tell listeners of the topic `table:NAME`; fine when there is none."""

    async def remove(self, table: str, key: str) -> None:
        """Remove one row, likewise; fine when there is none."""

    async def read(self, table: str) -> Table:
        """All rows."""

    async def version(self, table: str) -> int:
        """Changes with every change of the table; 0 when it was never written, or was lost."""


class Topics(Protocol):
    """Events between replicas. Delivery is tried, not promised: whoever needs to know also looks."""

    async def publish(self, topic: str, message: bytes) -> None:
        """Tell every replica that listens."""

    def listen(self, topic: str) -> AsyncGenerator[bytes | None, None]:
        """What is published from now on; None first, and again whenever something may have been missed, so
        that the listener looks for itself. Goes on, by itself, when the store comes back."""


class Replicas(Protocol):
    """Who is alive."""

    async def beat(self, replica: str, note: bytes, ttl_s: float) -> None:
        """Count as alive for `ttl_s` from now; `note` is what the others are to know."""

    async def leave(self, replica: str) -> None:
        """Count as gone at once."""

    async def alive(self) -> Mapping[str, bytes]:
        """Every live replica and its note."""


class Beats(Protocol):
    """When something last gave a sign of life."""

    async def beat(self, name: str) -> None:
        """It did now."""

    async def forget(self, name: str) -> None:
        """It is no more; fine when it never did."""

    async def silent(self, limit_s: float) -> list[str]:
        """What gave a sign once, and none for `limit_s`. Nothing is when the store was away within that time:
        signs may have been lost."""


class SharedState(Protocol):
    """All of it."""

    @property
    def leases(self) -> Leases: ...

    @property
    def rates(self) -> Rates: ...

    @property
    def ledgers(self) -> Ledgers: ...

    @property
    def tables(self) -> Tables: ...

    @property
    def topics(self) -> Topics: ...

    @property
    def replicas(self) -> Replicas: ...

    @property
    def beats(self) -> Beats: ...

    def health(self) -> StateHealth:
        """How it is with the store; costs nothing."""

    async def close(self) -> None:
        """Let go of connections. Leases and entries stay until they expire or are dropped."""
