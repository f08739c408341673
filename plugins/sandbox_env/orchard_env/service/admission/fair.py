"""The service's back-pressure: a gate for each kind of work, and the tenants' own rates."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Protocol

from orchard_core import Record, ServiceOverloaded
from orchard_env.service.admission.gate import Gate, GateLimits, GateLoad
from orchard_env.service.faults import TooManyRequests
from orchard_env.service.seams import Tenant, Work
from orchard_env.service.state.contract import SharedState
from orchard_env.service.tenancy.quota import Quota
from orchard_env.service.tenancy.records import TenantRecord


class AdmissionLimits(Record):
    """Bounds of each kind of work of one replica."""

    create: GateLimits = GateLimits(at_once=64, queue=4096, tenant_queue=2048, wait_s=120.0)
    """Sandboxes that come up at once."""
    exec: GateLimits = GateLimits(at_once=2048, queue=8192, tenant_queue=4096, tenant_share=0.75)
    """Commands that are begun, or streamed, at once."""
    transfer: GateLimits = GateLimits(at_once=512, queue=4096, tenant_queue=1024, tenant_share=0.75)
    """Files, trees, tunnels and terminals at once."""


class Terms(Protocol):
    """What the operator set of tenants."""

    def record(self, name: str) -> TenantRecord:
        """A tenant, for its weight."""

    def quota(self, name: str) -> Quota:
        """What it may have, for its rates."""


class FairAdmission:
    """Honours `Admission`."""

    def __init__(self, terms: Terms, state: SharedState, limits: AdmissionLimits | None = None) -> None:
        limits = limits or AdmissionLimits()
        self._terms = terms
        self._state = state
        self._gates = {
            Work.CREATE: Gate("making sandboxes", limits.create),
            Work.EXEC: Gate("running commands", limits.exec),
            Work.TRANSFER: Gate("moving files", limits.transfer),
        }
        self._draining = False

    def enter(self, tenant: Tenant, work: Work) -> AbstractAsyncContextManager[None]:
        """See Admission."""
        return _Ticket(self, tenant.name, work)

    def drain(self) -> None:
        """Take no new work but what is light: this replica is about to end."""
        self._draining = True

    @property
    def draining(self) -> bool:
        """Whether it takes no new work."""
        return self._draining

    @property
    def loads(self) -> Mapping[Work, GateLoad]:
        """How full each gate is."""
        return {work: gate.load for work, gate in self._gates.items()}

    async def take(self, tenant: str, work: Work) -> float:
        """Wait for a turn. Raises as Admission."""
        if self._draining:
            raise ServiceOverloaded(
                "this replica is ending and takes no new work",
                retry_after_s=1.0,
                hint="come again: another replica answers",
            )
        await self._keep_rate(tenant, work)
        return await self._gates[work].enter(tenant, self._terms.record(tenant).weight)

    def give_back(self, tenant: str, work: Work, began: float) -> None:
        """The work is done."""
        self._gates[work].leave(tenant, began)

    async def _keep_rate(self, tenant: str, work: Work) -> None:
        quota = self._terms.quota(tenant)
        if work is Work.CREATE and quota.creates_per_min is not None:
            per_s, burst, words = quota.creates_per_min / 60, quota.creates_per_min / 6, "creates a minute"
            limit = quota.creates_per_min
        elif work is Work.EXEC and quota.execs_per_s is not None:
            per_s, burst, words = quota.execs_per_s, quota.execs_per_s * 2, "commands a second"
            limit = quota.execs_per_s
        else:
            return
        wait = await self._state.rates.take(
            f"{work.value}:{tenant}", count=1.0, per_s=per_s, burst=max(1.0, burst)
        )
        if wait > 0.0:
            raise TooManyRequests(
                f"tenant {tenant} is over its {limit:g} {words}",
                retry_after_s=wait,
                hint="come again after the seconds that Retry-After says, or ask the operator for more",
            )


class _Ticket:
    """Held while work is done. A class, because a generator costs several times as much on every call."""

    __slots__ = ("_admission", "_began", "_tenant", "_work")

    def __init__(self, admission: FairAdmission, tenant: str, work: Work) -> None:
        self._admission = admission
        self._tenant = tenant
        self._work = work
        self._began = 0.0

    async def __aenter__(self) -> None:
        if self._work is not Work.LIGHT:
            self._began = await self._admission.take(self._tenant, self._work)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._work is not Work.LIGHT:
            self._admission.give_back(self._tenant, self._work, self._began)
