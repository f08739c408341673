"""What the service can do, and what the caller has."""

from __future__ import annotations

from fastapi import APIRouter, Request

from orchard_core import __version__
from orchard_env.service.entry import Status
from orchard_env.service.seams import Scope
from orchard_env.service.v2.base import Routes
from orchard_env.service.v2.refusals import REFUSALS
from orchard_env.service.v2.route import JsonRoute
from orchard_env.types.v2 import ServiceView, UsageView


class ServiceRoutes(Routes):
    """`/v2/capabilities` and `/v2/usage`."""

    def router(self) -> APIRouter:
        """The routes."""
        router = APIRouter(route_class=JsonRoute, tags=["service"])
        add = router.add_api_route
        add(
            "/capabilities",
            self.capabilities,
            methods=["GET"],
            response_model=ServiceView,
            responses=REFUSALS,
        )
        add("/usage", self.usage, methods=["GET"], response_model=UsageView, responses=REFUSALS)
        return router

    async def capabilities(self, request: Request) -> ServiceView:
        """What can be asked of this service: kinds of image, network policies, snapshots, terminals."""
        self._caller(request, Scope.READ)
        provider = self._services.fleet.provider
        return ServiceView(
            version=__version__,
            provider=provider.name,
            capabilities=await provider.capabilities(),
            heartbeat_s=self._services.settings.heartbeat_s,
        )

    async def usage(self, request: Request) -> UsageView:
        """What stands in the caller's name, and its bounds."""
        tenant = self._caller(request, Scope.READ)
        entries = await self._services.fleet.list(tenant=tenant.name)
        saved = [snapshot.size for snapshot in await self._services.saved.of(tenant.name)]
        specs = [entry.spec for entry in entries if entry.status is not Status.FAILED]
        return UsageView(
            tenant=tenant.name,
            scopes=tuple(sorted(scope.value for scope in tenant.scopes)),
            sandboxes=len(specs),
            cpu=sum(spec.cpu or 0.0 for spec in specs),
            memory_mb=sum(spec.memory_mb or 0 for spec in specs),
            snapshots=len(saved),
            snapshots_mb=-(-sum(saved) // (1 << 20)),
            quota=self._services.tenancy.bounds(tenant.name),
        )
