"""Where the sandboxes of one driver live: containers of one engine."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from orchard_core import (
    Capabilities,
    CreationStep,
    SandboxCreateFailed,
    SandboxError,
    SandboxExists,
    SandboxGone,
    SandboxSpec,
    Snapshot,
    SpecRefused,
    StandingSandbox,
    note_step,
    unbroken,
)
from orchard_sandbox_container.body import check, create_body
from orchard_sandbox_container.box import Box, BoxRoot
from orchard_sandbox_container.config import ContainerConfig
from orchard_sandbox_container.container import Container
from orchard_sandbox_container.engine import Engine, EngineRefused
from orchard_sandbox_container.images import EngineImage, Images
from orchard_sandbox_container.labels import NAME, labels_for, read_labels
from orchard_sandbox_container.owner import Owner
from orchard_sandbox_container.progress import OnProgress
from orchard_sandbox_container.reaper import list_ours, reap
from orchard_sandbox_container.snapshots import Snapshots

_STANDS = ("running", "paused")


class ContainerPlaces:
    """Honours `AdoptingPlaces` and `SavingPlaces`."""

    def __init__(
        self,
        engine: Engine,
        config: ContainerConfig,
        root: BoxRoot,
        able: Capabilities,
        *,
        provider: str,
        on_progress: OnProgress | None = None,
    ) -> None:
        self._engine = engine
        self._config = config
        self._root = root
        self._able = able
        self._images = Images(engine, config, on_progress=on_progress)
        self._snapshots = Snapshots(engine, provider)
        self._working = asyncio.Semaphore(config.concurrency)
        self._reaping: asyncio.Task[object] | None = None
        self._containers: dict[str, Container] = {}
        self._users: dict[str, str] = {}

    async def place(self, sandbox_id: str, spec: SandboxSpec) -> Container:
        """See Places. The first one is made when what dead drivers left has been removed."""
        check(spec, self._able)
        await self._reaped()
        image = await self._image(spec)
        try:
            return await self._create(sandbox_id, spec, image, spec.user or image.user)
        except EngineRefused as error:
            if error.status != 404:
                raise _not_created(sandbox_id, error) from error
        self._images.forget(spec.image)
        image = await self._image(spec)
        try:
            return await self._create(sandbox_id, spec, image, spec.user or image.user)
        except EngineRefused as error:
            raise _not_created(sandbox_id, error) from error

    async def _image(self, spec: SandboxSpec) -> EngineImage:
        image = await self._images.get(spec.image)
        note_step(CreationStep.PULLED)
        return image

    async def restore(self, sandbox_id: str, spec: SandboxSpec, snapshot: Snapshot) -> Container:
        """See SavingPlaces."""
        check(spec, self._able)
        saved = self._snapshots.find(snapshot, spec, spec.user)
        try:
            return await self._create(sandbox_id, spec, saved.image, saved.user)
        except EngineRefused as error:
            raise _not_created(sandbox_id, error) from error

    async def _create(self, sandbox_id: str, spec: SandboxSpec, image: EngineImage, user: str) -> Container:
        """Raises SandboxExists, EngineRefused, SandboxCreateFailed."""
        try:
            box = await asyncio.to_thread(self._root.new_box, sandbox_id)
            # Some engines want to see what they shall mount when the container is made.
            await asyncio.to_thread(box.run.mkdir, 0o700)
        except OSError as error:
            raise SandboxCreateFailed(f"sandbox {sandbox_id} has no directory: {error}") from error
        labels = labels_for(sandbox_id, spec, Owner.me(), box.path.name)
        body = create_body(
            sandbox_id=sandbox_id, spec=spec, image=image, user=user, box=box, agent=self._root.agent,
            labels=labels, config=self._config,
        )  # fmt: skip
        query = {"name": f"{NAME}{sandbox_id}"}
        if self._config.platform is not None:
            query["platform"] = self._config.platform
        making = asyncio.ensure_future(self._post_create(query, body))
        try:
            made = await asyncio.shield(making)
        except BaseException:
            await unbroken(self._undo(making, box))
            raise
        return self._container(sandbox_id, made, spec, box, image.id, user)

    async def _post_create(self, query: dict[str, str], body: dict[str, Any]) -> str:
        async with self._working:
            return str((await self._engine.post("/containers/create", query, body))["Id"])

    async def _undo(self, making: asyncio.Future[str], box: Box) -> None:
        """The engine goes on when its caller is cancelled: what it made then must go again."""
        try:
            with contextlib.suppress(SandboxError):
                await self._engine.delete(f"/containers/{await making}", {"force": "true", "v": "true"})
        finally:
            await asyncio.to_thread(box.remove)

    def _container(
        self, sandbox_id: str, container: str, spec: SandboxSpec, box: Box, image: str, user: str
    ) -> Container:
        async def removed() -> None:
            self._containers.pop(container, None)
            self._users.pop(container, None)
            await self._snapshots.sweep()

        made = Container(
            sandbox_id=sandbox_id, container=container, spec=spec, box=box, engine=self._engine,
            gate=self._gate, timeout_s=self._config.create_timeout_s, image=image, on_removed=removed,
        )  # fmt: skip
        self._containers[container] = made
        self._users[container] = user
        return made

    @contextlib.asynccontextmanager
    async def _gate(self) -> AsyncIterator[None]:
        async with self._working:
            yield

    async def save(self, place: Container, spec: SandboxSpec) -> Snapshot:
        """See SavingPlaces."""
        image = await self._images.get(spec.image)
        return await self._snapshots.save(place, self._users.get(place.container, ""), image)

    async def discard(self, snapshot: Snapshot) -> None:
        """See SavingPlaces."""
        await self._snapshots.discard(snapshot.id)

    async def standing(self) -> list[StandingSandbox]:
        """See AdoptingProvider."""
        found = await list_ours(self._engine)
        return [one.told.standing for one in found if one.state in _STANDS]

    async def find(self, sandbox_id: str) -> tuple[Container, StandingSandbox]:
        """See AdoptingPlaces."""
        try:
            found = await self._engine.get(f"/containers/{NAME}{sandbox_id}/json")
        except EngineRefused as error:
            if error.status == 404:
                raise SandboxGone(f"no sandbox {sandbox_id} stands", hint="it ended, or never was") from error
            raise
        told = read_labels((found.get("Config") or {}).get("Labels"))
        box = None if told is None else self._root.box(told.box)
        if told is None or box is None or told.standing.id != sandbox_id:
            raise SandboxGone(f"the container {NAME}{sandbox_id} is none of ours", hint="choose another name")
        if (found.get("State") or {}).get("Status") not in _STANDS:
            raise SandboxGone(f"sandbox {sandbox_id} has ended: its container runs no more")
        spec = told.standing.spec
        user = spec.user or ""
        made = self._container(sandbox_id, found["Id"], spec, box, str(found.get("Image") or ""), user)
        return made, told.standing

    async def _reaped(self) -> None:
        if self._reaping is None:
            self._reaping = asyncio.create_task(
                reap(self._engine, self._root, keep=self._config.keep_leftovers)
            )
        with contextlib.suppress(SandboxError):
            await asyncio.shield(self._reaping)

    async def close(self) -> None:
        """See Places. Containers that still stand were released: another driver adopts them."""
        await self._snapshots.close()
        await asyncio.gather(*(container.release() for container in list(self._containers.values())))
        self._containers.clear()
        if self._reaping is not None:
            await asyncio.wait([self._reaping])
        await self._engine.close()


def _not_created(sandbox_id: str, error: EngineRefused) -> SandboxError:
    if error.status == 409 or "already in use" in error.message:  # Podman answers 500
        return SandboxExists(
            f"a sandbox named {sandbox_id} stands already on this engine",
            hint="close that one first, or take another name",
        )
    if error.status in (400, 422):
        return SpecRefused(f"sandbox {sandbox_id} could not be created: {error.message}")
    return SandboxCreateFailed(f"sandbox {sandbox_id} could not be created: {error.message}")
