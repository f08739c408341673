"""Saved states of a sandbox's files, and copies of a sandbox."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from fastapi import APIRouter, Request, Response

from orchard_core import CreateTimedOut, SandboxSpec, Snapshot, SnapshotMissing
from orchard_env.service.creating import create_sandbox
from orchard_env.service.entry import Entry
from orchard_env.service.noting import note
from orchard_env.service.seams import Scope, Tenant, Work
from orchard_env.service.v2.base import Routes, SandboxId
from orchard_env.service.v2.handles import handed, opened
from orchard_env.service.v2.refusals import REFUSALS
from orchard_env.service.v2.route import JsonRoute
from orchard_env.service.v2.views import sandbox_view
from orchard_env.types.v2 import ForkRequest, SandboxList, SnapshotList


class SnapshotRoutes(Routes):
    """`/v2/sandboxes/{sandbox_id}/snapshot`, `/fork` and `/v2/snapshots`. A snapshot is restored by POST
    /v2/sandboxes."""

    def router(self) -> APIRouter:
        """The routes."""
        router = APIRouter(route_class=JsonRoute, tags=["snapshots"])
        one = "/sandboxes/{sandbox_id}"
        shared: dict[str, Any] = {"responses": REFUSALS, "status_code": 201}
        add = router.add_api_route
        add(f"{one}/snapshot", self.snapshot, methods=["POST"], response_model=Snapshot, **shared)
        add(f"{one}/fork", self.fork, methods=["POST"], response_model=SandboxList, **shared)
        add("/snapshots", self.snapshots, methods=["GET"], response_model=SnapshotList, responses=REFUSALS)
        add(
            "/snapshots/{snapshot_id}",
            self.discard,
            methods=["DELETE"],
            status_code=204,
            response_class=Response,
            responses=REFUSALS,
        )
        return router

    async def snapshot(self, request: Request, sandbox_id: SandboxId) -> Snapshot:
        """Save every file that was written, changed or deleted, as of one moment. What runs inside goes
        on."""
        entry = await self._entry(request, Scope.CREATE)
        tenant = self._caller(request, Scope.CREATE)
        async with self._services.admission.enter(tenant, Work.CREATE):
            discard = self._services.fleet.provider.discard
            saved = await self._services.saved.kept(entry.tenant, entry.sandbox.snapshot, discard)
        note(self._services, request, "snapshot.create", entry.id)
        return handed(self._services, saved, entry.tenant)

    async def snapshots(self, request: Request) -> SnapshotList:
        """The caller's snapshots: to restore them, or to discard what is done."""
        tenant = self._caller(request, Scope.READ)
        provider = self._services.fleet.provider.name
        found = [
            one.model_copy(update={"provider": provider})
            for one in await self._services.saved.of(tenant.name)
        ]
        return SnapshotList(snapshots=tuple(handed(self._services, one, tenant.name) for one in found))

    async def fork(self, request: Request, sandbox_id: SandboxId, wanted: ForkRequest) -> SandboxList:
        """Sandboxes of the same spec that begin with this one's files, and with nothing running. All of
        them are made, or none; they are ready when this answers."""
        entry = await self._entry(request, Scope.CREATE)
        tenant = self._caller(request, Scope.CREATE)
        note(self._services, request, "sandbox.fork", entry.id)
        async with self._services.admission.enter(tenant, Work.CREATE):
            saved = await entry.sandbox.snapshot()
        owner = Tenant(name=entry.tenant, key_id=tenant.key_id, scopes=tenant.scopes)
        try:
            made = await self._copies(owner, entry.spec, saved, wanted)
        finally:
            await asyncio.shield(asyncio.ensure_future(self._services.fleet.provider.discard(saved)))
        return SandboxList(sandboxes=tuple(sandbox_view(entry) for entry in made))

    async def _copies(
        self, owner: Tenant, spec: SandboxSpec, saved: Snapshot, wanted: ForkRequest
    ) -> list[Entry]:
        nameless = spec.model_copy(update={"name": None})
        made: list[Entry] = []
        try:
            for _ in range(wanted.count):
                made.append(  # noqa: PERF401 - those made before a refusal are to be ended
                    await create_sandbox(
                        self._services, owner, nameless, restore=saved, limit_s=wanted.timeout_s
                    )
                )
            for entry in made:
                await entry.settled.wait()  # a making has its own limit
                if isinstance(entry.fault, CreateTimedOut):
                    raise entry.fault
                _ = entry.sandbox
        except BaseException:
            await asyncio.gather(*(self._services.fleet.delete(entry) for entry in made))
            raise
        return made

    async def discard(self, request: Request, snapshot_id: str) -> Response:
        """Remove a snapshot; fine when it is gone. Sandboxes that were restored from it live on."""
        tenant = self._caller(request, Scope.CREATE)
        found = opened(self._services, Snapshot(id=snapshot_id, provider="", size=0), tenant)
        with suppress(SnapshotMissing):
            await self._services.fleet.provider.discard(found)
        await self._services.saved.gone(tenant.name, found.id)
        note(self._services, request, "snapshot.discard")
        return Response(status_code=204)
