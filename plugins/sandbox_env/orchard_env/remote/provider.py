"""The provider `remote`: an AdoptingAgentProvider whose capabilities a service tells."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from orchard_core import (
    AdoptingAgentProvider,
    Capabilities,
    Sandbox,
    SandboxSpec,
    Snapshot,
    StandingSandbox,
)
from orchard_env.remote.config import RemoteConfig
from orchard_env.remote.places import NAME, RemotePlaces
from orchard_env.remote.service import RemoteService
from orchard_env.types.v2 import ServiceView

_BEATS = 4
"""Heartbeats in the time after which the service destroys what sent none."""


class RemoteProvider:
    """Honours `orchard_core.AdoptingProvider`. The service is asked when it is first needed."""

    def __init__(self, config: RemoteConfig | None = None) -> None:
        """Raises ConfigError when no service is named, or its key cannot be read."""
        self._config = config or RemoteConfig()
        self._address = self._config.address()
        self._opening = asyncio.Lock()
        self._provider: AdoptingAgentProvider | None = None
        self._places: RemotePlaces | None = None

    @property
    def name(self) -> str:
        """See SandboxProvider."""
        return NAME

    async def capabilities(self) -> Capabilities:
        """See SandboxProvider: those of the provider behind the service, but for what only its machine could
        give."""
        return await (await self._open()).capabilities()

    async def create(self, spec: SandboxSpec, *, restore: Snapshot | None = None) -> Sandbox:
        """See SandboxProvider."""
        return await (await self._open()).create(spec, restore=restore)

    async def discard(self, snapshot: Snapshot) -> None:
        """See SandboxProvider."""
        await (await self._open()).discard(snapshot)

    async def standing(self) -> list[StandingSandbox]:
        """See AdoptingProvider."""
        return await (await self._open()).standing()

    async def adopt(self, sandbox_id: str, *, wanted: Callable[[SandboxSpec], bool] | None = None) -> Sandbox:
        """See AdoptingProvider."""
        return await (await self._open()).adopt(sandbox_id, wanted=wanted)

    async def release(self) -> None:
        """See AdoptingProvider. Heartbeats stop: who adopts goes on with them, within the service's time."""
        provider, self._provider = self._provider, None
        if provider is not None:
            await provider.release()

    async def close(self) -> None:
        """See SandboxProvider."""
        provider, self._provider = self._provider, None
        if provider is not None and self._places is not None:
            await self._places.discard_all()
            await provider.close()

    async def _open(self) -> AdoptingAgentProvider:
        async with self._opening:
            if self._provider is None:
                service = RemoteService(self._address)
                try:
                    view = await service.view()
                except BaseException:
                    await service.close()
                    raise
                self._places = RemotePlaces(service, self._config, beat_s=view.heartbeat_s / _BEATS)
                self._provider = AdoptingAgentProvider(
                    name=NAME, capabilities=_able(view), places=self._places, keeps_time=False
                )
            return self._provider


def _able(view: ServiceView) -> Capabilities:
    both = view.capabilities.snapshot and view.capabilities.fork
    return view.capabilities.model_copy(update={"mounts": False, "snapshot": both, "fork": both})
