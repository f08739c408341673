"""The parts of a service, put together as an operator asks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from orchard_core import SandboxProvider
from orchard_env.service.defaults import NoAudit, NoMeters, OpenAdmission, OpenTenancy
from orchard_env.service.fleet import Fleet
from orchard_env.service.services import Services
from orchard_env.service.settings import ServiceSettings
from orchard_env.service.team import Team, team
from orchard_env.service.team_settings import TeamSettings


@asynccontextmanager
async def assembled(
    provider: SandboxProvider, settings: ServiceSettings, *, shared: TeamSettings | None = None
) -> AsyncIterator[Services]:
    """Every part, until it is left. With `shared.keyed`, callers need keys. Raises ConfigError."""
    shared = shared or TeamSettings()
    if shared.keyed:
        async with team(shared, provider) as parts:
            yield _for_a_team(provider, settings, parts)
        return
    tenancy, meters = OpenTenancy(), NoMeters()
    yield Services(
        fleet=Fleet(provider, settings=settings, gone=tenancy.freed, created=meters.created),
        tenancy=tenancy,
        admission=OpenAdmission(),
        audit=NoAudit(),
        meters=meters,
        settings=settings,
    )


def _for_a_team(provider: SandboxProvider, settings: ServiceSettings, parts: Team) -> Services:
    meters = NoMeters()
    return Services(
        fleet=Fleet(
            provider,
            settings=settings,
            heartbeats=parts.heartbeats,
            gone=parts.tenancy.freed,
            created=meters.created,
        ),
        tenancy=parts.tenancy,
        admission=parts.admission,
        audit=parts.audit,
        meters=meters,
        settings=settings,
        conditions=parts.conditions,
        secret=parts.secret,
    )
