"""Where the provider's sandboxes live: a service."""

from __future__ import annotations

import asyncio
import re
import uuid
from contextlib import suppress

from orchard_core import (
    NewPlace,
    OrchardError,
    SandboxExists,
    SandboxGone,
    SandboxSpec,
    SandboxUnsupported,
    Snapshot,
    StandingPlace,
    StandingSandbox,
    unbroken,
)
from orchard_env.remote.config import RemoteConfig
from orchard_env.remote.heartbeats import Heartbeats
from orchard_env.remote.place import RemotePlace, StraightWay
from orchard_env.remote.service import RemoteService, fault_of, request_for
from orchard_env.types.v2 import SandboxRequest, SandboxView

NAME = "remote"
_UNDO_S = 60.0
_OURS = re.compile(f"{NAME}-[0-9a-f]{{12}}")
"""Ids that the provider made up for specs without a name."""


class RemotePlaces:
    """Honours SavingPlaces and AdoptingPlaces."""

    def __init__(self, service: RemoteService, config: RemoteConfig, *, beat_s: float) -> None:
        self._service = service
        self._config = config
        self._beats = Heartbeats(service, every_s=beat_s) if config.heartbeat else None
        self._straight = StraightWay()
        self._saved: set[str] = set()

    async def place(self, sandbox_id: str, spec: SandboxSpec) -> NewPlace:
        """See Places."""
        return await self._create(sandbox_id, spec, None)

    async def restore(self, sandbox_id: str, spec: SandboxSpec, snapshot: Snapshot) -> NewPlace:
        """See SavingPlaces."""
        return await self._create(sandbox_id, spec, snapshot)

    async def _create(self, sandbox_id: str, spec: SandboxSpec, snapshot: Snapshot | None) -> NewPlace:
        if spec.mounts:
            raise SandboxUnsupported(
                "the provider remote cannot show pieces of this machine inside a sandbox elsewhere",
                hint="upload them, or use the provider local",
            )
        wanted = request_for(sandbox_id, spec, self._config.labels, timeout_s=self._config.create_s)
        wanted = wanted.model_copy(update={"restore": snapshot})
        key = uuid.uuid4().hex
        try:
            await self._service.create(wanted, key)
        except (asyncio.CancelledError, OrchardError) as error:
            if not isinstance(error, (SandboxExists, SandboxUnsupported)):
                await unbroken(self._undo(wanted, key))
            raise
        return self._at(sandbox_id, spec.workdir)

    async def _undo(self, wanted: SandboxRequest, key: str) -> None:
        """Whether the service made it is unknown: the same request tells, and touches nothing of another."""
        with suppress(OrchardError, TimeoutError):
            async with asyncio.timeout(_UNDO_S):
                view = await self._service.create(wanted, key)
                await self._service.delete(view.id)

    def _at(self, sandbox_id: str, workdir: str) -> RemotePlace:
        return RemotePlace(
            self._service, self._config, self._beats, self._straight, sandbox_id=sandbox_id, workdir=workdir
        )

    async def standing(self) -> list[StandingSandbox]:
        """See AdoptingProvider: those that carry the configured labels."""
        views = await self._service.list(self._config.labels)
        return [self._standing(view) for view in views if view.status != "failed"]

    async def find(self, sandbox_id: str) -> tuple[StandingPlace, StandingSandbox]:
        """See AdoptingPlaces."""
        view = await self._service.get(sandbox_id)
        fault = fault_of(view)
        if fault is not None:
            raise fault if isinstance(fault, SandboxGone) else SandboxGone(fault.message, hint=fault.hint)
        if view.status == "pending":
            view = await self._service.ready(sandbox_id, self._config.create_s)
        return self._at(sandbox_id, view.workdir or view.spec.workdir), self._standing(view)

    def _standing(self, view: SandboxView) -> StandingSandbox:
        """With the spec as it was given to the provider, which added a name and the configured labels."""
        labels = {name: value for name, value in view.spec.labels.items() if name not in self._config.labels}
        name = None if _OURS.fullmatch(view.id) else view.spec.name
        spec = view.spec.model_copy(update={"labels": labels, "name": name})
        return StandingSandbox(id=view.id, spec=spec, created=view.created)

    async def save(self, place: NewPlace, spec: SandboxSpec) -> Snapshot:
        """See SavingPlaces."""
        assert isinstance(place, RemotePlace)
        saved = await self._service.snapshot(place.id)
        self._saved.add(saved.id)
        return saved.model_copy(update={"provider": NAME})

    async def discard(self, snapshot: Snapshot) -> None:
        """See SavingPlaces."""
        await self._service.discard(snapshot.id)
        self._saved.discard(snapshot.id)

    async def discard_all(self) -> None:
        """Remove every snapshot that was made here. Never raises."""
        with suppress(OrchardError):
            await asyncio.gather(*(self._service.discard(one) for one in self._saved))
        self._saved.clear()

    async def close(self) -> None:
        """See Places."""
        if self._beats is not None:
            await self._beats.close()
        await self._service.close()
