"""Sandboxes of v1: create, look, wait, heartbeat, delete."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from orchard_env.service.creating import create_sandbox
from orchard_env.service.http import answer, caller, read_json, seconds
from orchard_env.service.noting import note
from orchard_env.service.reach import reach
from orchard_env.service.seams import Scope
from orchard_env.service.services import Services
from orchard_env.service.v1.models import CreateSandbox
from orchard_env.service.v1.spec import spec_of, told

_WAIT_S = 60.0


class SandboxRoutes:
    """Handlers over the parts of one service."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._settings = services.settings

    async def create(self, request: Request) -> Response:
        """Make a sandbox; the answer comes before it is ready."""
        tenant = caller(request, Scope.CREATE)
        asked = await read_json(request, CreateSandbox, self._settings.body_mb << 20)
        able = await self._services.fleet.provider.capabilities()
        spec = spec_of(asked, self._settings, able)
        entry = await create_sandbox(self._services, tenant, spec, limit_s=asked.timeout)
        note(self._services, request, "sandbox.create", entry.id)
        return answer(told(entry, self._settings))

    async def get(self, request: Request) -> Response:
        """How a sandbox stands."""
        entry = await reach(self._services, request, Scope.READ)
        return answer(told(entry, self._settings))

    async def wait(self, request: Request) -> Response:
        """Wait until it is ready."""
        entry = await reach(self._services, request, Scope.READ)
        await entry.ready(seconds(request, "timeout", _WAIT_S, self._settings.wait_s))
        return answer(told(entry, self._settings))

    async def heartbeat(self, request: Request) -> Response:
        """Say that somebody still needs it."""
        entry = await reach(self._services, request, Scope.USE)
        await self._services.fleet.beat(entry)
        return answer({"status": "ok", "sandbox_id": entry.id})

    async def delete(self, request: Request) -> Response:
        """End it; it is gone when the answer comes."""
        entry = await reach(self._services, request, Scope.CREATE)
        await self._services.fleet.delete(entry)
        note(self._services, request, "sandbox.delete", entry.id)
        return answer({"status": "deleted", "sandbox_id": entry.id})
