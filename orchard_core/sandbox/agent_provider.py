"""A sandbox provider for authors: they say where an agent can run, and everything else is here.

AgentProvider(name="mine", capabilities=CAPABILITIES, places=MyPlaces())
"""

from __future__ import annotations

import asyncio
import secrets
from typing import Protocol

from orchard_core.errors import SandboxUnsupported
from orchard_core.sandbox.agent import AgentClient
from orchard_core.sandbox.agent_sandbox import AgentSandbox, Place
from orchard_core.sandbox.furnish import check_spec, furnish
from orchard_core.sandbox.lifetime import watch_lifetime
from orchard_core.types.sandbox import Capabilities, SandboxSpec, Snapshot


class NewPlace(Place, Protocol):
    """A place in which no agent runs yet: `restart` starts the first."""

    @property
    def workdir(self) -> str:
        """Where commands start, a path inside: the spec's own, unless it stands for another."""


class Places(Protocol):
    """Where the sandboxes of one provider live."""

    async def place(self, sandbox_id: str, spec: SandboxSpec) -> NewPlace:
        """A place for one sandbox. Raises SandboxUnsupported before it makes anything when the spec asks
        for what cannot be had, and SandboxUnavailable, SandboxCreateFailed."""

    async def close(self) -> None:
        """Give back what all of them share; their sandboxes are closed by then."""


class AgentProvider:
    """Honours `orchard_core.SandboxProvider`."""

    def __init__(self, *, name: str, capabilities: Capabilities, places: Places) -> None:
        self._name = name
        self._capabilities = capabilities
        self._places = places
        self._sandboxes: dict[str, AgentSandbox] = {}

    @property
    def name(self) -> str:
        """See SandboxProvider."""
        return self._name

    async def capabilities(self) -> Capabilities:
        """See SandboxProvider."""
        return self._capabilities

    async def create(self, spec: SandboxSpec, *, restore: Snapshot | None = None) -> AgentSandbox:
        """See SandboxProvider."""
        check_spec(spec)
        self._refuse(spec, restore)
        sandbox_id = f"{self._name}-{secrets.token_hex(6)}"
        place = _Kept(await self._places.place(sandbox_id, spec), self._sandboxes, sandbox_id)
        try:
            client = await place.restart()
        except BaseException:
            await asyncio.shield(place.destroy())
            raise
        sandbox = AgentSandbox(
            sandbox_id=sandbox_id,
            spec=spec.model_copy(update={"workdir": place.workdir}),
            capabilities=self._capabilities,
            place=place,
            client=client,
        )
        try:
            await furnish(sandbox)
        except BaseException:
            await sandbox.close()
            raise
        self._sandboxes[sandbox_id] = sandbox
        place.watcher = asyncio.create_task(watch_lifetime(sandbox))
        return sandbox

    async def discard(self, snapshot: Snapshot) -> None:
        """See SandboxProvider."""

    def _refuse(self, spec: SandboxSpec, restore: Snapshot | None) -> None:
        able = self._capabilities
        refused = {
            f"the image {spec.image}": spec.image.kind not in able.images,
            f"the network policy {spec.network.mode.value}": able.isolated
            and spec.network.mode not in able.networks,
            "snapshots": restore is not None and not able.snapshot,
        }
        for what, wanted in refused.items():
            if wanted:
                raise SandboxUnsupported(
                    f"the provider {self._name} cannot give {what}", hint="use the provider `local`"
                )

    async def close(self) -> None:
        """See SandboxProvider."""
        await asyncio.gather(*(sandbox.close() for sandbox in list(self._sandboxes.values())))
        await self._places.close()


class _Kept:
    """A place whose end is noted, and ends the clock that watches it."""

    def __init__(self, place: NewPlace, sandboxes: dict[str, AgentSandbox], sandbox_id: str) -> None:
        self._place = place
        self._sandboxes = sandboxes
        self._id = sandbox_id
        self.watcher: asyncio.Task[None] | None = None

    @property
    def workdir(self) -> str:
        return self._place.workdir

    async def restart(self) -> AgentClient:
        return await self._place.restart()

    async def destroy(self) -> None:
        if self.watcher is not None:
            self.watcher.cancel()
        try:
            await self._place.destroy()
        finally:
            self._sandboxes.pop(self._id, None)

    def ended(self) -> str | None:
        return self._place.ended()
