"""The container provider: sandboxes in Docker or Podman."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from orchard_core import (
    AdoptingAgentProvider,
    AgentSandbox,
    Capabilities,
    NetworkMode,
    SandboxSpec,
    SandboxUnavailable,
    Snapshot,
    StandingSandbox,
)
from orchard_sandbox_container.address import candidates
from orchard_sandbox_container.box import open_root
from orchard_sandbox_container.config import ContainerConfig
from orchard_sandbox_container.engine import Engine, find_engine
from orchard_sandbox_container.places import ContainerPlaces
from orchard_sandbox_container.progress import OnProgress

NAME = "container"


class ContainerProvider:
    """Honours `orchard_core.AdoptingProvider`. The engine is looked for at the first use.

    Sandboxes outlive the process that made them when it lets go of them (`release`) or is killed; snapshots
    end with this object.
    """

    def __init__(
        self, config: ContainerConfig | None = None, *, on_progress: OnProgress | None = None
    ) -> None:
        """`on_progress` hears how pulls and builds of images go on."""
        self._config = config or ContainerConfig()
        self._on_progress = on_progress
        self._inner: AdoptingAgentProvider | None = None
        self._opening = asyncio.Lock()

    @property
    def name(self) -> str:
        """See SandboxProvider."""
        return NAME

    async def capabilities(self) -> Capabilities:
        """See SandboxProvider."""
        return await (await self._open()).capabilities()

    async def create(self, spec: SandboxSpec, *, restore: Snapshot | None = None) -> AgentSandbox:
        """See SandboxProvider."""
        return await (await self._open()).create(spec, restore=restore)

    async def discard(self, snapshot: Snapshot) -> None:
        """See SandboxProvider."""
        if self._inner is not None:
            await self._inner.discard(snapshot)

    async def standing(self) -> list[StandingSandbox]:
        """See AdoptingProvider."""
        return await (await self._open()).standing()

    async def adopt(
        self, sandbox_id: str, *, wanted: Callable[[SandboxSpec], bool] | None = None
    ) -> AgentSandbox:
        """See AdoptingProvider."""
        return await (await self._open()).adopt(sandbox_id, wanted=wanted)

    async def release(self) -> None:
        """See AdoptingProvider."""
        async with self._opening:
            if self._inner is not None:
                inner, self._inner = self._inner, None
                await inner.release()

    async def close(self) -> None:
        """See SandboxProvider."""
        async with self._opening:
            if self._inner is not None:
                inner, self._inner = self._inner, None
                await inner.close()

    async def _open(self) -> AdoptingAgentProvider:
        async with self._opening:
            if self._inner is None:
                self._inner = await open_inner(self._config, self._on_progress)
            return self._inner


async def open_inner(config: ContainerConfig, on_progress: OnProgress | None) -> AdoptingAgentProvider:
    """The provider on the engine that answers. Raises SandboxUnavailable, ConfigError."""
    root = await asyncio.to_thread(open_root, config.state_dir)
    engine, info = await find_engine(candidates(config.engine))
    try:
        _refuse_far_engine(engine, info)
    except SandboxUnavailable:
        await engine.close()
        raise
    able = capabilities_of(info, config)
    places = ContainerPlaces(engine, config, root, able, provider=NAME, on_progress=on_progress)
    return AdoptingAgentProvider(name=NAME, capabilities=able, places=places)


def _refuse_far_engine(engine: Engine, info: dict[str, Any]) -> None:
    """The agent is reached by a Unix socket in a shared directory, which does not leave a virtual machine."""
    if "Docker Desktop" in str(info.get("OperatingSystem") or ""):
        raise SandboxUnavailable(
            f"the engine at {engine.address} is Docker Desktop, whose containers run in a virtual "
            "machine that shares files with this one and no sockets",
            hint="run Orchard where the engine runs: on Linux with Docker Engine or Podman, or in WSL 2",
        )


def capabilities_of(info: dict[str, Any], config: ContainerConfig) -> Capabilities:
    """What an engine can do, by what it tells of itself."""
    cgroup = f"cgroup-v{info.get('CgroupVersion') or '1'}"
    told = {"memory": "MemoryLimit", "pids": "PidsLimit", "cpu": "CpuCfsQuota"}
    limits = {name: cgroup for name, field in told.items() if info.get(field)}
    images = {"oci", "build"} | ({"host"} if config.host_image is not None else set())
    return Capabilities.model_validate(
        {
            "images": images,
            "networks": frozenset(NetworkMode),
            "users": True,
            "mounts": True,
            "pty": True,
            "snapshot": not config.read_only_root,
            "fork": not config.read_only_root,
            "gpu": config.gpus is not None,
            "limits": limits | {"disk": "measured"},
        }
    )
