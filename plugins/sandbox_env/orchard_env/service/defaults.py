"""Parts of a service that needs none: one user on a laptop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from orchard_core import OrchardError, SandboxSpec
from orchard_env.service.seams import ALL_SCOPES, AuditEvent, Making, Scope, Stands, Tenant, Work

_EVERYBODY = Tenant(name="local", key_id="none", scopes=ALL_SCOPES | {Scope.ADMIN})


class OpenTenancy:
    """Honours `Tenancy`: whoever reaches the service may do everything. For loopback addresses."""

    async def identify(self, key: str | None) -> Tenant:
        """See Tenancy."""
        return _EVERYBODY

    async def allow_create(self, tenant: Tenant, spec: SandboxSpec, standing: Stands) -> None:
        """See Tenancy."""

    async def freed(self, tenant: str, sandbox_id: str) -> None:
        """See Tenancy."""

    def bounds(self, tenant: str) -> Mapping[str, float]:
        """See Tenancy."""
        return {}


class OpenAdmission:
    """Honours `Admission`: everything at once."""

    def enter(self, tenant: Tenant, work: Work) -> AbstractAsyncContextManager[None]:
        """See Admission."""
        return _at_once()


@asynccontextmanager
async def _at_once() -> AsyncIterator[None]:
    yield


class NoAudit:
    """Honours `Audit`: the access log is enough."""

    def record(self, event: AuditEvent) -> None:
        """See Audit."""


class NoMeters:
    """Honours `Meters`."""

    def arrived(self) -> None:
        """See Meters."""

    def answered(self, route: str, status: int, seconds: float) -> None:
        """See Meters."""

    def created(self, making: Making) -> None:
        """See Meters."""

    def adopted(self, sandbox_id: str, tenant: str, spec: SandboxSpec) -> None:
        """See Meters."""

    def ended(self, sandbox_id: str, fault: OrchardError | None) -> None:
        """See Meters."""

    def executed(
        self, tenant: str, outcome: str, seconds: float, overhead_s: float | None = None, *, run: str
    ) -> None:
        """See Meters."""

    def exposition(self) -> bytes:
        """See Meters."""
        return b""
