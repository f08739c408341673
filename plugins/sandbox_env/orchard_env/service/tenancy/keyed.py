"""Tenants told apart by their API keys, with quotas."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Protocol

from orchard_core import QuotaExceeded, SandboxSpec
from orchard_env.service.faults import KeyMissing, KeyRefused
from orchard_env.service.seams import Stands, Tenant
from orchard_env.service.state.contract import SharedState
from orchard_env.service.state.values import Full
from orchard_env.service.tenancy.quota import Quota, Unstated, in_words
from orchard_env.service.tenancy.records import AccessIndex, KeyRecord, TenantRecord
from orchard_env.service.tenancy.secret import key_id, matches
from orchard_env.service.tenancy.usage import Usage

_GRACE_S = 120.0
"""A sandbox that was allowed so lately may not stand yet, and counts all the same."""

_LAG_S = 10.0
"""A list of what stands may still hold what was deleted so lately."""


class Keys(Protocol):
    """Where tenants and keys are kept."""

    @property
    def index(self) -> AccessIndex:
        """All of them, as they are now; on the hot path of every call."""

    @property
    def fault(self) -> str:
        """What is wrong with the place, in words; empty when nothing is."""

    async def start(self) -> None:
        """Begin to keep up with changes."""

    async def close(self) -> None:
        """End it."""


class KeyedTenancy:
    """Honours `Tenancy`."""

    def __init__(
        self,
        keys: Keys,
        state: SharedState,
        *,
        default: Quota | None = None,
        unstated: Unstated | None = None,
    ) -> None:
        """`default`: the quota of a tenant that has none of its own."""
        self._keys = keys
        self._state = state
        self._default = default or Quota()
        self._unstated = unstated or Unstated()
        self._settled: dict[str, int] = {}

    async def identify(self, key: str | None) -> Tenant:
        """See Tenancy."""
        if not key:
            raise KeyMissing(
                "this call needs an API key", hint="send it in the header X-API-Key, or set SANDBOX_API_KEY"
            )
        record = self._keys.index.keys.get(key_id(key) or "")
        # The comparison comes first, so that an unknown id and a wrong secret take equally long.
        if not matches(key, record) or record is None:
            raise KeyRefused("the API key is not known here", hint="ask the operator for one")
        if not record.good(time.time()):
            raise KeyRefused(_why_bad(record), hint="ask the operator for a new one")
        return Tenant(name=record.tenant, key_id=record.id, scopes=frozenset(record.scopes))

    def holder(self, key_id: str) -> Tenant | None:
        """Whose key it is, by its id alone; None when it is revoked, expired or unknown."""
        record = self._keys.index.keys.get(key_id)
        if record is None or not record.good(time.time()):
            return None
        return Tenant(name=record.tenant, key_id=record.id, scopes=frozenset(record.scopes))

    async def allow_create(self, tenant: Tenant, spec: SandboxSpec, standing: Stands) -> None:
        """See Tenancy."""
        limits = self.quota(tenant.name).limits
        entry, amounts, ledger = spec.name or "", self._unstated.amounts(spec), _ledger(tenant.name)
        if self._to_be_settled(tenant.name):
            await self._settle(tenant.name, standing)
        full = await self._state.ledgers.hold(ledger, entry, amounts, limits)
        if full is None and self._to_be_settled(tenant.name):
            # The store went away under it, and it was let in by what this replica knows alone.
            await self._state.ledgers.drop(ledger, entry)
            await self._settle(tenant.name, standing)
            full = await self._state.ledgers.hold(ledger, entry, amounts, limits)
        if full is not None:
            # Something may have ended without anybody's word: what stands decides.
            await self._settle(tenant.name, standing)
            full = await self._state.ledgers.hold(ledger, entry, amounts, limits)
        if full is not None:
            raise _refusal(tenant.name, full, amounts)

    async def freed(self, tenant: str, sandbox_id: str) -> None:
        """See Tenancy."""
        await self._state.ledgers.drop(_ledger(tenant), sandbox_id)

    def bounds(self, tenant: str) -> Mapping[str, float]:
        """See Tenancy."""
        return self.quota(tenant).model_dump(exclude_none=True)

    def record(self, name: str) -> TenantRecord:
        """A tenant as it was set, or with the defaults."""
        return self._keys.index.tenant(name)

    def quota(self, name: str) -> Quota:
        """What a tenant may have."""
        return self.record(name).quota or self._default

    async def usage(self, name: str) -> Usage:
        """What a tenant has, beside what it may have."""
        ledger = await self._state.ledgers.read(_ledger(name))
        sandboxes, milli, memory = ledger.totals or (0, 0, 0)
        return Usage(
            tenant=name, sandboxes=sandboxes, cpu=milli / 1000, memory_mb=memory, quota=self.quota(name)
        )

    def names(self) -> list[str]:
        """Every tenant that was set or has a key."""
        index = self._keys.index
        return sorted({*index.tenants, *(key.tenant for key in index.keys.values())})

    def _to_be_settled(self, tenant: str) -> bool:
        """The first time, after the store came back, and for as long as it is away: then only what stands
        tells of other replicas' sandboxes."""
        health = self._state.health()
        away = bool(health.detail)
        return away or self._settled.get(tenant) != health.generation

    async def _settle(self, tenant: str, standing: Stands) -> None:
        generation = self._state.health().generation
        stands = {one.sandbox_id: self._unstated.amounts(one.spec) for one in await standing()}
        await self._state.ledgers.settle(_ledger(tenant), stands, age_s=_LAG_S, grace_s=_GRACE_S)
        self._settled[tenant] = generation


def _ledger(tenant: str) -> str:
    return f"tenant:{tenant}"


def _why_bad(record: KeyRecord) -> str:
    """Told only to who has the secret."""
    if record.revoked is not None:
        return f"the API key {record.id} was revoked"
    return f"the API key {record.id} has expired"


def _refusal(tenant: str, full: Full, amounts: tuple[int, ...]) -> QuotaExceeded:
    used, limit = in_words(full.index, full.used), in_words(full.index, full.limit)
    asked = in_words(full.index, amounts[full.index])
    return QuotaExceeded(
        f"tenant {tenant} uses {used} of {limit}, and this asks for {asked}",
        hint="delete sandboxes that are done, or ask the operator for a larger quota",
    )
