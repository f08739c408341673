"""Sandboxes: made, found, kept alive, ended."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request

from orchard_core import AgentSandbox, SandboxUnsupported
from orchard_env.service.entry import Entry
from orchard_env.service.http import owned_by
from orchard_env.service.noting import note
from orchard_env.service.seams import Scope
from orchard_env.service.v2.base import Routes, SandboxId, Wait
from orchard_env.service.v2.making import checked_key, make
from orchard_env.service.v2.paging import Cursor, Labels, Limit, page
from orchard_env.service.v2.refusals import REFUSALS
from orchard_env.service.v2.route import JsonRoute
from orchard_env.service.v2.views import sandbox_view
from orchard_env.types.v2 import ExtendRequest, SandboxList, SandboxRequest, SandboxView

Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        max_length=128,
        description="Made by the client: the same key with the same body is the same sandbox, not another.",
    ),
]
Statuses = Annotated[
    list[str], Query(description="`pending`, `ready` or `failed`; may be repeated. All when left out.")
]


class SandboxRoutes(Routes):
    """`/v2/sandboxes`."""

    def router(self) -> APIRouter:
        """The routes."""
        router = APIRouter(route_class=JsonRoute, tags=["sandboxes"])
        shared: dict[str, Any] = {"responses": REFUSALS, "response_model": SandboxView}
        one = "/sandboxes/{sandbox_id}"
        add = router.add_api_route
        add("/sandboxes", self.list, methods=["GET"], response_model=SandboxList, responses=REFUSALS)
        add("/sandboxes", self.create, methods=["POST"], status_code=201, **shared)
        add(one, self.get, methods=["GET"], **shared)
        add(one, self.delete, methods=["DELETE"], **shared)
        add(f"{one}/heartbeat", self.heartbeat, methods=["POST"], **shared)
        add(f"{one}/extend", self.extend, methods=["POST"], **shared)
        add(f"{one}/reset", self.reset, methods=["POST"], **shared)
        return router

    async def list(
        self,
        request: Request,
        label: Labels = (),  # type: ignore[assignment]
        status: Statuses = (),  # type: ignore[assignment]
        limit: Limit = 100,
        cursor: Cursor = None,
    ) -> SandboxList:
        """The caller's sandboxes, oldest first, those that carry every given label."""
        tenant = self._caller(request, Scope.READ)
        entries = await self._services.fleet.list(tenant=owned_by(tenant))
        found = page(entries, labels=label, statuses=status, limit=limit, cursor=cursor)
        return SandboxList(
            sandboxes=tuple(sandbox_view(entry) for entry in found.entries), next=found.next_cursor
        )

    async def create(
        self, request: Request, wanted: SandboxRequest, idempotency_key: Key = None, wait: Wait = 0.0
    ) -> SandboxView:
        """Make a sandbox. The answer comes at once, with the status `pending`; with `wait`, when it is
        ready or has failed, or the wait is over."""
        tenant = self._caller(request, Scope.CREATE)
        entry = await make(self._services, request, tenant, wanted, checked_key(idempotency_key))
        await self._settled(entry, wait)
        return sandbox_view(entry)

    async def get(self, request: Request, sandbox_id: SandboxId, wait: Wait = 0.0) -> SandboxView:
        """How a sandbox stands; with `wait`, when it is pending no more, or the wait is over."""
        entry = await self._entry(request, Scope.READ)
        await self._settled(entry, wait)
        return sandbox_view(entry)

    async def _settled(self, entry: Entry, wait_s: float) -> None:
        if wait_s:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._bounded(wait_s)):
                    await entry.settled.wait()

    async def delete(self, request: Request, sandbox_id: SandboxId) -> SandboxView:
        """End a sandbox; nothing is left of it when this answers."""
        entry = await self._entry(request, Scope.CREATE)
        await self._services.fleet.delete(entry)
        note(self._services, request, "sandbox.delete", entry.id)
        return sandbox_view(entry)

    async def heartbeat(self, request: Request, sandbox_id: SandboxId) -> SandboxView:
        """Say that somebody still uses it. From the first heartbeat on it is destroyed when none comes for
        as long as /v2/capabilities tells."""
        entry = await self._entry(request, Scope.USE)
        await self._services.fleet.beat(entry)
        return sandbox_view(entry)

    async def extend(self, request: Request, sandbox_id: SandboxId, wanted: ExtendRequest) -> SandboxView:
        """Let it live at least so many seconds more, from now on."""
        entry = await self._entry(request, Scope.USE)
        sandbox = entry.sandbox
        if not isinstance(sandbox, AgentSandbox):
            raise SandboxUnsupported(
                f"the life of sandbox {entry.id} cannot be extended", hint="make another"
            )
        await sandbox.extend(wanted.ttl_s)
        return sandbox_view(entry)

    async def reset(self, request: Request, sandbox_id: SandboxId) -> SandboxView:
        """Kill everything inside and start a new agent with a new token; the files stay as they are."""
        entry = await self._entry(request, Scope.USE)
        await entry.sandbox.reset_processes()
        return sandbox_view(entry)
