"""The parts of a service, put together as an operator asks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from orchard_core import SandboxProvider
from orchard_env.service.defaults import NoAudit, NoMeters, OpenAdmission, OpenTenancy
from orchard_env.service.fleet import Fleet
from orchard_env.service.services import Services
from orchard_env.service.settings import ServiceSettings


@asynccontextmanager
async def assembled(
    provider: SandboxProvider, settings: ServiceSettings, *, keys: str | None = None
) -> AsyncIterator[Services]:
    """Every part, until it is left. Raises ConfigError."""
    assert keys is None
    tenancy, meters = OpenTenancy(), NoMeters()
    yield Services(
        fleet=Fleet(provider, settings=settings, gone=tenancy.freed, created=meters.created),
        tenancy=tenancy,
        admission=OpenAdmission(),
        audit=NoAudit(),
        meters=meters,
        settings=settings,
    )
