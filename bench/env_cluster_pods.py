"""Pods without us, made and heard of just as sandboxes are."""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import deepcopy
from typing import Self

from orchard_env.kubernetes.api import ClusterApi
from orchard_env.kubernetes.config import KubernetesConfig
from orchard_env.kubernetes.informer import PodInformer
from orchard_env.kubernetes.manifest import PodOwner, pod_manifest
from orchard_env.kubernetes.pods import PodView
from orchard_env.kubernetes.resources import NAMESPACES, PODS, Manifest, Resource, Selector

from orchard_core.types.sandbox import SandboxSpec

IMAGE = "busybox:1.36"
KINDS = ("bare", "empty init")
SERVICE_ACCOUNTS = Resource(group="/api/v1", plural="serviceaccounts")
LABELS = {"orchard-bench": "plain"}
UP_S = 180.0
PAUSE_S, PAUSE_MAX_S = 0.005, 0.05
"""As the provider asks an agent that is to come."""


@asynccontextmanager
async def fresh_namespace(api: ClusterApi) -> AsyncIterator[None]:
    """All that is made lies in one namespace, which goes with it."""
    api.namespace = f"orchard-bench-{secrets.token_hex(4)}"
    about = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": api.namespace}}
    await api.create(NAMESPACES, about)
    try:
        # No pod can be made before its namespace has its service account.
        while await api.get(SERVICE_ACCOUNTS, "default") is None:
            await asyncio.sleep(0.05)
        yield
    finally:
        await api.delete(NAMESPACES, api.namespace)


class PlainPods:
    """Bare pods, and the same with our volumes and an init container that does nothing."""

    def __init__(self, api: ClusterApi, spec: SandboxSpec, config: KubernetesConfig) -> None:
        self._api = api
        self._spec = spec
        self._config = config
        self._pods = PodInformer(api, Selector.of(LABELS))

    async def __aenter__(self) -> Self:
        await self._pods.start()
        await self._pods.wait_synced(UP_S)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._pods.close()

    async def answer(self, kind: str, number: int) -> float:
        """Seconds from the request until the pod answered what a command wrote; it is deleted after."""
        name = f"plain-{kind.replace(' ', '-')}-{number}"
        manifest = self._manifest(name, kind)
        began = time.perf_counter()
        await self._api.create(PODS, manifest)
        try:
            pod = await self._pods.until(name, _has_address, UP_S)
            assert pod is not None
            await self._answered(pod.ip)
            return time.perf_counter() - began
        finally:
            await self._api.delete(PODS, name, grace_s=0)

    async def settled(self) -> None:
        """Until no pod of the namespace is there: a node that removes one is slower to start another. Then a
        moment of chance: a kubelet looks at its containers once a second, and the last end sets when."""
        async with asyncio.timeout(UP_S):
            while await self._api.list(PODS):
                await asyncio.sleep(0.1)
        await asyncio.sleep(random.uniform(0.0, 1.0))

    async def _answered(self, host: str) -> None:
        pause = PAUSE_S
        async with asyncio.timeout(UP_S):
            while not await _said(host, self._config.agent_port):
                await asyncio.sleep(pause)
                pause = min(pause * 1.5, PAUSE_MAX_S)

    def _manifest(self, name: str, kind: str) -> Manifest:
        owner = PodOwner(driver="bench")
        ours = deepcopy(pod_manifest(name, self._spec, self._config, owner, memory_mb=None))
        pod, container, init = ours["spec"], ours["spec"]["containers"][0], ours["spec"]["initContainers"][0]
        ours["metadata"] = {"name": name, "labels": LABELS}
        port = str(self._config.agent_port)
        container["command"] = ["nc", "-ll", "-p", port, "-e", "echo", "ok"]
        if kind == "bare":
            del pod["initContainers"], pod["volumes"], container["volumeMounts"]
        else:
            init |= {"image": IMAGE, "command": ["true"], "args": [], "env": []}
        return ours


def _has_address(pod: PodView | None) -> bool:
    return pod is not None and bool(pod.ip)


async def _said(host: str, port: int) -> bool:
    """Whether it answered a connection."""
    try:
        async with asyncio.timeout(1.0):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                return await reader.read(16) == b"ok\n"
            finally:
                writer.close()
    except OSError:
        return False
