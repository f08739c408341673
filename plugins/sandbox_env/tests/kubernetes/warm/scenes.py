"""Pools against the stand-in for an API server, whose pods' agents say that they live."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from orchard_env.kubernetes import labels
from orchard_env.kubernetes.api import ClusterApi
from orchard_env.kubernetes.config import KubernetesConfig
from orchard_env.kubernetes.places import PodPlaces
from orchard_env.kubernetes.resources import PODS, Manifest
from orchard_env.kubernetes.warm.config import PoolConfig
from orchard_env.kubernetes.warm.told import PoolStats
from orchard_env.testing.cluster import FakeCluster
from orchard_env.testing.cluster.agents import serve_agents

from orchard_core import ImageRef, SandboxSpec

from ..clusters import ENOUGH, standin

SMALL = SandboxSpec(image=ImageRef(kind="oci", value="busybox:1.36"), cpu=0.1, memory_mb=64)
POOL: dict[str, Any] = {"name": "small", "image": "busybox:1.36", "cpu": 0.1, "memory_mb": 64}


class Scene:
    """A stand-in, and as many drivers as a case opens."""

    def __init__(self, folder: Path, cluster: FakeCluster, api: ClusterApi, port: int) -> None:
        self.cluster = cluster
        self.api = api
        self._folder = folder
        self._port = port

    def config(self, *, fill: bool = False, pool: Any = None, **options: Any) -> KubernetesConfig:
        """Of one driver; `pool` changes the pool's settings."""
        return KubernetesConfig(
            kubeconfig=str(self._folder / "kubeconfig"),
            agent_port=self._port,
            fill_pools=fill,
            pools=(PoolConfig(**{**POOL, **(pool or {})}),),
            **({"reap": False} | options),
        )

    @asynccontextmanager
    async def places(self, **given: Any) -> AsyncIterator[PodPlaces]:
        """One driver, connected; `given` is as for `config`."""
        opened = PodPlaces(self.config(**given))
        try:
            await opened.session()
            yield opened
        finally:
            await opened.close()

    async def pods(self) -> list[Manifest]:
        """All that stand and are not about to go."""
        found = await self.api.list(PODS)
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    async def waiting(self) -> list[str]:
        """The names of the pods that nobody has claimed."""
        return [pod["metadata"]["name"] for pod in await self.pods() if _waits(pod)]


def _waits(pod: Manifest) -> bool:
    told = pod["metadata"]["labels"]
    return labels.POOL in told and labels.SANDBOX not in told


@asynccontextmanager
async def scene(folder: Path) -> AsyncIterator[Scene]:
    async with AsyncExitStack() as stack:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        await stack.enter_async_context(serve_agents(port))
        cluster, api = await stack.enter_async_context(standin(folder))
        yield Scene(folder, cluster, api, port)


async def until(places: PodPlaces, good: Callable[[PoolStats], bool]) -> PoolStats:
    """What the one pool says once that is so."""
    async with asyncio.timeout(ENOUGH):
        while not good(places.pools()[0]):
            await asyncio.sleep(0.01)
    return places.pools()[0]
