"""Snapshots: images that the engine commits from containers.

Their driver stands in their tag: labels go over to the containers that are made from an image.
"""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass

from orchard_core import SandboxError, SandboxSpec, SandboxUnsupported, Snapshot, SnapshotMissing, unbroken
from orchard_sandbox_container.container import Container
from orchard_sandbox_container.engine import Engine, EngineRefused
from orchard_sandbox_container.images import EngineImage
from orchard_sandbox_container.owner import Owner

REPOSITORY = "localhost/orchard-snapshot"
"""The engine's name for them; nobody pulls from, or pushes to, a registry of that name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """One snapshot as it lies with the engine."""

    snapshot: Snapshot
    """Its name outside."""
    image: EngineImage
    """The committed image."""
    spec: SandboxSpec
    """Of the sandbox it was taken of."""
    user: str
    """Whom its commands ran as."""


class Snapshots:
    """The snapshots of one driver; they end with it."""

    def __init__(self, engine: Engine, provider: str) -> None:
        self._engine = engine
        self._provider = provider
        self._saved: dict[str, Saved] = {}
        self._unwanted: set[str] = set()
        self._sweeping = asyncio.Lock()

    async def save(self, container: Container, user: str, env: EngineImage) -> Snapshot:
        """Commit one, stopped meanwhile; nothing is left when that fails or is cancelled. Raises SandboxGone,
        DiskFull, SandboxError."""
        name = f"snapshot-{secrets.token_hex(6)}"
        try:
            async with container.stopped():
                made = await self._commit(container, name)
                history = await self._engine.get(f"/images/{made}/history")
        except BaseException:
            await unbroken(self._remove(f"{REPOSITORY}:{_tag(name)}"))
            raise
        snapshot = Snapshot(id=name, provider=self._provider, size=int(history[0].get("Size") or 0))
        image = EngineImage(id=made, user=env.user, env=env.env)
        self._saved[name] = Saved(snapshot=snapshot, image=image, spec=container.spec, user=user)
        return snapshot

    async def _commit(self, container: Container, name: str) -> str:
        query = {"container": container.container, "repo": REPOSITORY, "tag": _tag(name), "pause": "true"}
        made = await self._engine.post("/commit", query, {}, patience=600)
        return str(made["Id"])

    def find(self, snapshot: Snapshot, spec: SandboxSpec, user: str | None) -> Saved:
        """The one to be restored by a spec. Raises SnapshotMissing, SandboxUnsupported."""
        saved = self._saved.get(snapshot.id)
        if snapshot.provider != self._provider or saved is None:
            raise SnapshotMissing(
                f"the provider {self._provider} has no snapshot {snapshot.id}",
                hint="it was discarded, or another process saved it: a snapshot ends with its provider",
            )
        for what, now, then in (("image", spec.image, saved.spec.image), ("user", user, saved.spec.user)):
            if now != then:
                raise SandboxUnsupported(
                    f"the snapshot {snapshot.id} was saved under another {what}: {then}",
                    hint=f"give the {what} it was saved under; all else in the spec may differ",
                )
        return saved

    async def discard(self, name: str) -> None:
        """Forget one, and remove its image when no container needs it; fine when it is gone."""
        if self._saved.pop(name, None) is not None:
            await self._remove(f"{REPOSITORY}:{_tag(name)}")

    async def sweep(self) -> None:
        """Remove what could not be while containers needed it."""
        async with self._sweeping:
            for image in list(self._unwanted):
                await self._remove(image)

    async def _remove(self, image: str) -> None:
        # Never by force: Podman would remove the containers made from it.
        try:
            await self._engine.delete(f"/images/{image}")
            self._unwanted.discard(image)
        except EngineRefused as error:
            if error.status == 409:
                self._unwanted.add(image)
        except SandboxError:
            self._unwanted.add(image)

    async def close(self) -> None:
        """Remove all of them."""
        for name in list(self._saved):
            await self.discard(name)
        await self.sweep()


def _tag(name: str) -> str:
    return f"{name}.{Owner.me().tag()}"


def owner_of(name: str) -> Owner | None:
    """The driver of the snapshot whose image has that name; None for what is no snapshot."""
    repository, _, tag = name.rpartition(":")
    return Owner.from_tag(tag.partition(".")[2]) if repository == REPOSITORY else None
