"""A new sandbox for a tenant: its quota, its place in the queue, and then the fleet's."""

from __future__ import annotations

import secrets

from orchard_core import OrchardError, SandboxExists, SandboxSpec, SandboxUnsupported, Snapshot
from orchard_env.service.entry import Entry
from orchard_env.service.fleet import Fleet
from orchard_env.service.seams import Standing, Tenant, Work
from orchard_env.service.services import Services


async def create_sandbox(
    services: Services,
    tenant: Tenant,
    spec: SandboxSpec,
    *,
    limit_s: float | None = None,
    restore: Snapshot | None = None,
) -> Entry:
    """An entry that is pending. Raises QuotaExceeded, SandboxExists, ServiceOverloaded, TooManyRequests,
    SandboxUnsupported for what the provider cannot give, SandboxUnavailable."""
    await _refuse(services, spec)
    fleet = services.fleet
    if spec.name is None:
        spec = spec.model_copy(update={"name": f"sb-{secrets.token_hex(8)}"})
    else:
        await fleet.check_free(spec.name, tenant.name)
    assert spec.name is not None
    await services.tenancy.allow_create(tenant, spec, lambda: _standing(fleet, tenant))
    try:
        return await fleet.create(
            spec,
            tenant=tenant.name,
            restore=restore,
            limit_s=limit_s,
            slot=services.admission.enter(tenant, Work.CREATE),
        )
    except BaseException as error:
        # One of the same name that came first is this tenant's own, and goes on counting.
        if not (isinstance(error, SandboxExists) and await _is_own(fleet, tenant, spec.name)):
            await services.tenancy.freed(tenant.name, spec.name)
        raise


async def _standing(fleet: Fleet, tenant: Tenant) -> list[Standing]:
    entries = await fleet.list(tenant=tenant.name)
    return [Standing(sandbox_id=entry.id, spec=entry.spec) for entry in entries if entry.fault is None]


async def _is_own(fleet: Fleet, tenant: Tenant, name: str) -> bool:
    try:
        await fleet.get(name, tenant=tenant.name)
    except OrchardError:
        return False
    return True


async def _refuse(services: Services, spec: SandboxSpec) -> None:
    """What the provider would refuse anyway, told to the one who asks and not to the one who waits."""
    able = await services.fleet.provider.capabilities()
    name = services.fleet.provider.name
    if spec.image.kind not in able.images:
        raise SandboxUnsupported(
            f"the provider {name} cannot run the image {spec.image}",
            hint=f"it takes images of the kinds {', '.join(sorted(able.images))}",
        )
    if able.isolated and spec.network.mode not in able.networks:
        raise SandboxUnsupported(
            f"the provider {name} cannot give the network policy {spec.network.mode.value}",
            hint=f"it gives {', '.join(sorted(mode.value for mode in able.networks))}",
        )
