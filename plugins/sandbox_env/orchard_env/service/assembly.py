"""The parts of a service, put together as an operator asks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from orchard_core import SandboxProvider
from orchard_env.service.defaults import NoAudit, OpenAdmission, OpenTenancy
from orchard_env.service.fleet import Fleet
from orchard_env.service.observe.observing import Observing, observing, watching
from orchard_env.service.observe.settings import ObserveSettings
from orchard_env.service.pools import keeping_pools
from orchard_env.service.services import Services
from orchard_env.service.settings import ServiceSettings
from orchard_env.service.team import Team, team
from orchard_env.service.team_settings import TeamSettings
from orchard_env.service.tenancy.saved import SavedFiles


@asynccontextmanager
async def assembled(
    provider: SandboxProvider,
    settings: ServiceSettings,
    *,
    shared: TeamSettings | None = None,
    observe: ObserveSettings | None = None,
) -> AsyncIterator[Services]:
    """Every part, until it is left. With `shared.keyed`, callers need keys. Raises ConfigError."""
    shared, observe = shared or TeamSettings(), observe or ObserveSettings()
    if shared.keyed:
        async with team(shared, provider) as parts:
            watch = observing(
                observe,
                unstated=shared.unstated,
                alone=shared.redis is None,
                loads=lambda: parts.admission.loads,
            )
            services = _for_a_team(provider, settings, parts, watch)
            pools = keeping_pools(provider, lambda: parts.leadership.leading)
            async with watching(watch, services.fleet, services.conditions), pools:
                yield services
        return
    tenancy, watch = OpenTenancy(), observing(observe)
    services = Services(
        fleet=Fleet(provider, settings=settings, gone=tenancy.freed, meters=watch.metrics),
        tenancy=tenancy,
        admission=OpenAdmission(),
        audit=NoAudit(),
        meters=watch.metrics,
        settings=settings,
        watch=watch,
    )
    async with watching(watch, services.fleet), keeping_pools(provider, lambda: True):
        yield services


def _for_a_team(
    provider: SandboxProvider, settings: ServiceSettings, parts: Team, watch: Observing
) -> Services:
    return Services(
        fleet=Fleet(
            provider,
            settings=settings,
            heartbeats=parts.heartbeats,
            gone=parts.tenancy.freed,
            meters=watch.metrics,
        ),
        tenancy=parts.tenancy,
        admission=parts.admission,
        audit=parts.audit,
        meters=watch.metrics,
        settings=settings,
        watch=watch,
        conditions=parts.conditions,
        secret=parts.secret,
        saved=SavedFiles(parts.state.ledgers, lambda tenant: parts.tenancy.quota(tenant).snapshot_limits),
    )
