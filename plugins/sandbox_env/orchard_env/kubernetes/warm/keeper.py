"""Filling pools, and draining what they have too much of or what is out of date."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Iterable, Mapping

from orchard_core import OrchardError
from orchard_env.kubernetes import labels
from orchard_env.kubernetes.faults import ObjectChanged
from orchard_env.kubernetes.pods import PodView
from orchard_env.kubernetes.resources import PODS, Manifest
from orchard_env.kubernetes.session import ClusterSession
from orchard_env.kubernetes.warm.claim import can_be_claimed
from orchard_env.kubernetes.warm.index import PoolIndex
from orchard_env.kubernetes.warm.pool import Pool
from orchard_env.kubernetes.warm.shape import pool_spec, template

_TICK_S = 1.0
_AT_ONCE = 16
_log = logging.getLogger(__name__)


class PoolKeeper:
    """One per process; it acts while `leads` says so. Two that act at once make too many pods, and drain
    them again: nothing worse."""

    def __init__(
        self,
        session: ClusterSession,
        pools: Mapping[str, Pool],
        index: PoolIndex,
        *,
        leads: Callable[[], bool],
    ) -> None:
        """`pools` by their shapes."""
        self._session = session
        self._pools = pools
        self._index = index
        self._leads = leads
        self.wake = asyncio.Event()
        """Look at once."""

    async def run(self) -> None:
        """Tend for ever."""
        while True:
            try:
                if self._leads() and self._session.pods.synced:
                    await self.tend()
            except OrchardError as error:
                _log.warning("the pools are not looked after at present: %s", error.message)
            self.wake.clear()
            try:
                async with asyncio.timeout(_TICK_S):
                    await self.wake.wait()
            except TimeoutError:
                continue

    async def tend(self) -> None:
        """Look once. Raises SandboxUnavailable."""
        for shape, pool in self._pools.items():
            good = await self._without_broken(pool, self._index.waiting(shape))
            self._learn_lead(pool, good)
            wanted = pool.wanted(self._session.api.now())
            if len(good) < wanted:
                await self._fill(pool, wanted - len(good))
            elif len(good) > pool.bearable(wanted):
                await self._drain(_by_use(good)[wanted:])
        for shape in self._index.shapes():
            if shape not in self._pools:
                await self._drain(pod for pod in self._index.waiting(shape) if self._own(pod))

    async def drain(self) -> None:
        """Remove every pod that waits in this driver's name. Raises SandboxUnavailable."""
        for shape in self._index.shapes():
            await self._drain(pod for pod in self._index.waiting(shape) if self._own(pod))

    def _own(self, pod: PodView) -> bool:
        """Another driver's pools may be of other shapes than ours."""
        return pod.labels.get(labels.DRIVER) == self._session.driver

    async def _without_broken(self, pool: Pool, waiting: Iterable[PodView]) -> list[PodView]:
        good = []
        for pod in waiting:
            if pod.deleting is not None:
                continue
            failed = self._session.waiter.failure(pod)
            age_s = self._session.api.now() - pod.created
            if failed is not None:
                pool.failed(failed.message)
            elif not pod.started and age_s > self._session.config.create_timeout_s:
                pool.failed(f"the pod {pod.name} did not come up within {age_s:.0f} s; it is {pod.phase}")
            else:
                good.append(pod)
                continue
            await self._drain([pod])
        return good

    def _learn_lead(self, pool: Pool, pods: Iterable[PodView]) -> None:
        now = self._session.api.now()
        for pod in pods:
            if can_be_claimed(pod):
                pool.came_up(pod.uid, now - pod.created)
            else:
                pool.comes_up(pod.uid)

    async def _fill(self, pool: Pool, missing: int) -> None:
        if not pool.may_try():
            return
        making = [self._make(pool) for _ in range(min(missing, _AT_ONCE, pool.trust()))]
        for fault in await asyncio.gather(*making):
            if fault:
                pool.failed(fault)
                return

    async def _make(self, pool: Pool) -> str:
        """Why it could not be begun; empty when it was."""
        session = self._session
        name = f"pool-{pool.config.name}-{secrets.token_hex(6)}"
        manifest: Manifest = template(name, pool_spec(pool.config), session.config)
        manifest["metadata"]["labels"] |= {labels.POOL: pool.shape, labels.DRIVER: session.driver}
        try:
            pod = await session.create(manifest)
        except OrchardError as error:
            return error.message
        pool.comes_up(pod.uid)
        pool.observer.filled(pool.config.name, fault="")
        return ""

    async def _drain(self, pods: Iterable[PodView]) -> None:
        """Remove those that are still as they were seen: one that is claimed this moment is a sandbox."""
        for pod in pods:
            try:
                await self._session.api.delete(
                    PODS, pod.name, uid=pod.uid, resource_version=pod.resource_version
                )
            except ObjectChanged:
                continue


def _by_use(pods: Iterable[PodView]) -> list[PodView]:
    """Those that can be claimed first, then by age: what is drained comes last."""
    return sorted(pods, key=lambda pod: (not can_be_claimed(pod), pod.created))
