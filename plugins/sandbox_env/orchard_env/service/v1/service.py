"""The service itself: banner, health, resources."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from orchard_core import __version__
from orchard_env.service.http import answer, caller
from orchard_env.service.resources import summary
from orchard_env.service.seams import Scope
from orchard_env.service.services import Services


class ServiceRoutes:
    """Handlers over the parts of one service."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def banner(self, request: Request) -> Response:
        """What this is."""
        return answer(
            {
                "service": "Orchard Env",
                "version": __version__,
                "health": "/health",
                "document": "/openapi.json",
            }
        )

    async def health(self, request: Request) -> Response:
        """Whether it serves."""
        state = "draining" if self._services.fleet.draining else "ok"
        body: dict[str, object] = {
            "status": state,
            "version": __version__,
            "provider": self._services.fleet.provider.name,
        }
        conditions = self._services.conditions()
        if conditions:
            body["degraded"] = list(conditions)
        return answer(body, 503 if self._services.fleet.draining else 200)

    async def resources(self, request: Request) -> Response:
        """What the provider has."""
        caller(request, Scope.READ)
        found = await summary(self._services.fleet.provider)
        return answer(
            {
                "nodes": found.nodes,
                "cpu": _amount(found.cpu_total, found.cpu_used),
                "memory": _amount(found.memory_total, found.memory_used),
                "sandboxes": self._services.fleet.size,
                "provider": self._services.fleet.provider.name,
            }
        )


def _amount(total: float, used: float) -> dict[str, float]:
    return {"total": total, "used": used, "free": max(0, total - used)}
