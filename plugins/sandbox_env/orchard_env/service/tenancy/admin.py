"""`/v2/admin`: what an operator asks of the service itself."""

from __future__ import annotations

from fastapi import APIRouter, FastAPI, Request

from orchard_core import Record
from orchard_env.service.admission.fair import FairAdmission
from orchard_env.service.admission.gate import GateLoad
from orchard_env.service.http import caller
from orchard_env.service.noting import note
from orchard_env.service.seams import Scope, Work
from orchard_env.service.services import Services
from orchard_env.service.tenancy.keyed import KeyedTenancy
from orchard_env.service.tenancy.usage import Usage
from orchard_env.service.v2.refusals import REFUSALS
from orchard_env.service.v2.route import JsonRoute


class TenantsView(Record):
    """Every tenant that was set or has a key."""

    tenants: tuple[Usage, ...]
    """What each has, beside what it may have."""


class ReplicaView(Record):
    """How the replica that answered stands."""

    draining: bool
    """Whether it takes no new work any more."""
    sandboxes: int
    """Sandboxes that it knows of."""
    conditions: tuple[str, ...]
    """What does not work as it should."""
    queues: dict[Work, GateLoad]
    """How full each queue is."""


def add_admin(app: FastAPI, services: Services) -> None:
    """Add the routes; without keys there are no tenants, and nothing is added."""
    tenancy, admission = services.tenancy, services.admission
    if not isinstance(tenancy, KeyedTenancy) or not isinstance(admission, FairAdmission):
        return

    def view() -> ReplicaView:
        return ReplicaView(
            draining=services.fleet.draining or admission.draining,
            sandboxes=services.fleet.size,
            conditions=tuple(services.conditions()),
            queues=dict(admission.loads),
        )

    async def tenants(request: Request) -> TenantsView:
        """Every tenant's usage and quota."""
        caller(request, Scope.ADMIN)
        return TenantsView(tenants=tuple([await usage(name) for name in tenancy.names()]))

    async def usage(name: str) -> Usage:
        saved = [snapshot.size for snapshot in await services.saved.of(name)]
        found = await tenancy.usage(name)
        return found.model_copy(update={"snapshots": len(saved), "snapshots_mb": -(-sum(saved) // (1 << 20))})

    async def replica(request: Request) -> ReplicaView:
        """How this replica stands."""
        caller(request, Scope.ADMIN)
        return view()

    async def drain(request: Request) -> ReplicaView:
        """Take no new work from now on; what is begun goes on. The process ends by SIGTERM."""
        caller(request, Scope.ADMIN)
        admission.drain()
        note(services, request, "replica.drain")
        return view()

    router = APIRouter(prefix="/v2/admin", route_class=JsonRoute, tags=["admin"])
    add = router.add_api_route
    add("/tenants", tenants, methods=["GET"], response_model=TenantsView, responses=REFUSALS)
    add("/replica", replica, methods=["GET"], response_model=ReplicaView, responses=REFUSALS)
    add("/drain", drain, methods=["POST"], response_model=ReplicaView, responses=REFUSALS)
    app.include_router(router)
