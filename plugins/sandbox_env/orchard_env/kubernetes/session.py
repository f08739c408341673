"""What all sandboxes of one provider share: the connection, the pods as they are, the seed, the lease."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
from contextlib import AsyncExitStack
from typing import Self

from orchard_core import OrchardError
from orchard_env.kubernetes import labels
from orchard_env.kubernetes.api import ApiLimits, ClusterApi
from orchard_env.kubernetes.config import KubernetesConfig
from orchard_env.kubernetes.demands import check_config
from orchard_env.kubernetes.failures import FailurePolicy
from orchard_env.kubernetes.faults import ObjectChanged
from orchard_env.kubernetes.informer import PodInformer
from orchard_env.kubernetes.lease import DriverLease
from orchard_env.kubernetes.manifest import PodOwner
from orchard_env.kubernetes.network import ensure_policy
from orchard_env.kubernetes.pods import PodView
from orchard_env.kubernetes.reaper import Reaper
from orchard_env.kubernetes.resources import PODS, Manifest
from orchard_env.kubernetes.tokens import ensure_seed
from orchard_env.kubernetes.waiting import PodWaiter

_log = logging.getLogger(__name__)
_SYNC_S = 60.0
_TEND_S = 5.0


class ClusterSession:
    """Made by `open`. Its parts are for the places of this package."""

    def __init__(
        self, *, config: KubernetesConfig, api: ClusterApi, seed: bytes, pods: PodInformer, driver: str
    ) -> None:
        self.config = config
        self.api = api
        self.seed = seed
        self.pods = pods
        self.driver = driver
        self.waiter = PodWaiter(
            api,
            pods,
            policy=FailurePolicy(schedule_grace_s=config.schedule_grace_s, pull_grace_s=config.pull_grace_s),
        )
        self.owner = PodOwner(driver=driver, reference=_own_pod(api, config))
        self.lease = DriverLease(api, driver, config.lease_s, self.owner.reference)
        self.held: set[str] = set()
        """Names of the pods that this process makes, has, or is about to remove."""
        self.reaper = Reaper(api, pods, driver=driver, lasts_s=config.lease_s, held=self.held)
        self._doomed: dict[str, str] = {}
        self._stack = AsyncExitStack()
        self._tasks: list[asyncio.Task[None]] = []

    @classmethod
    async def open(cls, config: KubernetesConfig) -> Self:
        """Connect, and make in the namespace what every sandbox needs. Raises ConfigError,
        SandboxUnavailable."""
        api = await ClusterApi.open(
            kubeconfig=config.kubeconfig,
            context=config.context,
            namespace=config.namespace,
            limits=ApiLimits(per_s=config.calls_per_s, burst=max(1, round(2 * config.calls_per_s))),
        )
        session: Self | None = None
        try:
            check_config(config, await api.version())
            seed = await ensure_seed(api, config.seed_secret)
            if config.network_policies:
                await ensure_policy(api, config)
            driver = config.driver or f"driver-{secrets.token_hex(6)}"
            pods = PodInformer(api, labels.SANDBOXES)
            session = cls(config=config, api=api, seed=seed, pods=pods, driver=driver)
            await session._begin()
        except BaseException:
            await (api.close() if session is None else session.close())
            raise
        return session

    async def _begin(self) -> None:
        await self.lease.open()
        await self._stack.enter_async_context(self.pods)
        await self.pods.wait_synced(_SYNC_S)
        await self._stack.enter_async_context(self.waiter)
        self._tasks.append(asyncio.create_task(self._tend()))
        if self.config.reap:
            self._tasks.append(asyncio.create_task(self.reaper.run()))

    async def create(self, manifest: Manifest) -> PodView:
        """Make a pod. Raises as `ClusterApi.create`."""
        return self.pods.learn(await self.api.create(PODS, manifest))

    async def remove(self, name: str, uid: str) -> None:
        """Delete that very pod, now or as soon as the server answers; never raises."""
        try:
            await self.api.delete(PODS, name, uid=uid)
        except ObjectChanged:
            pass  # a pod of that name is another's
        except OrchardError as error:
            _log.warning("the pod %s could not be deleted yet: %s", name, error.message)
            self._doomed[name] = uid
            return
        self._doomed.pop(name, None)

    async def _tend(self) -> None:
        """Delete what could not be, and what an interrupted create may have left of ours."""
        while True:
            await asyncio.sleep(_TEND_S)
            for name, uid in list(self._doomed.items()):
                await self.remove(name, uid)
            for pod in list(self._strays()):
                await self.remove(pod.name, pod.uid)

    def _strays(self) -> list[PodView]:
        """Pods in this driver's name that this process, the only one of that name, does not know."""
        if self.config.driver is not None or not self.pods.synced:
            return []
        return [
            pod
            for pod in self.pods
            if labels.is_ours(pod)
            and pod.labels.get(labels.DRIVER) == self.driver
            and pod.deleting is None
            and pod.name not in self.held
        ]

    async def close(self, *, released: bool = False) -> None:
        """Let go of everything; with `released`, the lease runs out by itself, so that others find time."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for name, uid in list(self._doomed.items()):
            await self.remove(name, uid)
        for pod in [] if released else self._strays():
            await self.remove(pod.name, pod.uid)
        kept = released or bool(self._doomed) or self.config.driver is not None
        await (self.lease.stop() if kept else self.lease.give_up())
        with contextlib.suppress(OrchardError):
            await self._stack.aclose()
        await self.api.close()


def _own_pod(api: ClusterApi, config: KubernetesConfig) -> Manifest | None:
    """The pod that this driver runs in, as the downward API told it: what it alone owns goes with it. The
    replicas of a named driver own theirs together, so that no one's end takes them along."""
    name, uid = os.environ.get("ORCHARD_POD_NAME"), os.environ.get("ORCHARD_POD_UID")
    here = os.environ.get("ORCHARD_POD_NAMESPACE") == api.namespace
    if config.driver is not None or not name or not uid or not here:
        return None
    return {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid}
