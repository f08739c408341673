"""The pools of one process: from which it takes, and which it fills while it leads."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable

from orchard_core import SandboxSpec
from orchard_env.kubernetes import labels
from orchard_env.kubernetes.pods import PodView
from orchard_env.kubernetes.session import ClusterSession
from orchard_env.kubernetes.warm.claim import Claimed, Claims, can_be_claimed
from orchard_env.kubernetes.warm.index import PoolIndex
from orchard_env.kubernetes.warm.keeper import PoolKeeper
from orchard_env.kubernetes.warm.pool import Pool
from orchard_env.kubernetes.warm.shape import pool_spec, shape_of
from orchard_env.kubernetes.warm.told import PoolObserver, PoolStats

_NOBODYS = re.compile(r".+-[0-9a-f]{12,}")
"""Ids that were drawn at random. A name that somebody chose is kept unique by the name of its pod."""


class WarmPools:
    """Of one session."""

    def __init__(self, session: ClusterSession, *, leads: Callable[[], bool], observer: PoolObserver) -> None:
        """`leads` is asked again and again. Raises ConfigError for a pod patch that cannot be put on."""
        self._session = session
        config = session.config
        shapes = [(shape_of(pool_spec(pool), config), pool) for pool in config.pools]
        self._pools = {shape: Pool(pool, shape, observer) for shape, pool in shapes}
        self._keeper: PoolKeeper | None = None
        self._index = PoolIndex(session.pods, self._asked)
        self._claims = Claims(session)
        self._keeper = PoolKeeper(session, self._pools, self._index, leads=leads)
        self._keeping = asyncio.create_task(self._keeper.run(), name="pool-keeper")

    def shape(self, spec: SandboxSpec) -> str | None:
        """The pool that serves a spec; None when none does."""
        shape = shape_of(spec, self._session.config) if self._pools else ""
        return shape if shape in self._pools else None

    def pod_of(self, sandbox_id: str) -> str | None:
        """The name of the pod that was claimed for a sandbox, by whatever process."""
        return self._index.pod_of(sandbox_id)

    async def claim(self, sandbox_id: str, spec: SandboxSpec) -> Claimed | None:
        """A pod that waited, made this sandbox; None when none is to be had. Raises SandboxUnavailable."""
        shape = self.shape(spec)
        if shape is None or not _NOBODYS.fullmatch(sandbox_id):
            return None
        pool, began = self._pools[shape], time.monotonic()
        claimed = await self._claims.take(sandbox_id, spec, self._index.waiting(shape))
        if claimed is None:
            pool.misses += 1
        else:
            pool.hits += 1
        pool.observer.claimed(pool.config.name, hit=claimed is not None, seconds=time.monotonic() - began)
        return claimed

    def stats(self) -> tuple[PoolStats, ...]:
        """Of each pool, as it is now."""
        return tuple(self._stats(shape, pool) for shape, pool in self._pools.items())

    def _stats(self, shape: str, pool: Pool) -> PoolStats:
        waiting = [pod for pod in self._index.waiting(shape) if _lives(pod)]
        ready = sum(map(can_be_claimed, waiting))
        return PoolStats(
            name=pool.config.name,
            ready=ready,
            coming=len(waiting) - ready,
            wanted=pool.wanted(self._session.api.now()),
            hits=pool.hits,
            misses=pool.misses,
            lost=self._claims.lost,
            fault=pool.fault,
        )

    def _asked(self, shape: str, when: float) -> None:
        if shape in self._pools:
            self._pools[shape].asked(when, self._session.api.now())
            if self._keeper is not None:
                self._keeper.wake.set()

    async def close(self, *, drain: bool) -> None:
        """Look after them no more; with `drain`, remove those that wait in this driver's name."""
        self._keeping.cancel()
        await asyncio.gather(self._keeping, return_exceptions=True)
        if drain and self._keeper is not None:
            await self._keeper.drain()
        self._index.close()


def _lives(pod: PodView) -> bool:
    return pod.deleting is None and pod.phase not in labels.ENDED
