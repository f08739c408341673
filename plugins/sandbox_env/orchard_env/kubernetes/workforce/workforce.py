"""Workers as pods of a Kubernetes cluster."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from importlib.util import find_spec
from typing import Any

from orchard_core import ConfigError, Stop, WorkerNews, WorkOrder, unbroken
from orchard_env.kubernetes.api import ClusterApi
from orchard_env.kubernetes.failures import FailurePolicy
from orchard_env.kubernetes.informer import PodInformer
from orchard_env.kubernetes.resources import JOBS, Manifest
from orchard_env.kubernetes.waiting import PodWaiter
from orchard_env.kubernetes.workforce.config import WorkforceConfig
from orchard_env.kubernetes.workforce.crew import Crew
from orchard_env.kubernetes.workforce.jobs import watch_jobs
from orchard_env.kubernetes.workforce.manifest import crew_selector, jobs_of
from orchard_env.kubernetes.workforce.removal import remove_crew, remove_or_tell
from orchard_env.kubernetes.workforce.shift import Shift

_SYNC_S = 60.0


class KubernetesWorkforce:
    """Honours `orchard_core.Workforce`. Workers whose coordinator was killed do their share to the end; the
    next coordinator of the run ends those that still work, and takes over what all of them did."""

    def __init__(self, config: WorkforceConfig) -> None:
        self.config = config

    @property
    def name(self) -> str:
        """See Workforce."""
        return "kubernetes"

    async def settle(self, order: WorkOrder) -> None:
        """See Workforce. Raises SandboxUnavailable when the cluster does not answer."""
        crew = Crew.load(order.run)
        if crew is None:
            return
        async with await self._connect() as api:
            await remove_crew(api, crew, grace_s=self.config.grace_s)

    async def work(self, order: WorkOrder, stop: Stop, told: Callable[[WorkerNews], None]) -> None:
        """See Workforce."""
        self.config.seen_by_workers(order.run)
        if stop.requested:
            return
        async with await self._connect() as api:
            crew = Crew.new(order.run, api.namespace)
            jobs = jobs_of(
                order, self.config, crew=crew.name, version=await api.version(), owner=_own_pod(api)
            )
            try:
                await self._until_done(api, order, crew, jobs, stop, told)
            finally:
                await unbroken(remove_or_tell(api, crew, grace_s=self.config.grace_s, stop=stop))

    async def _until_done(
        self,
        api: ClusterApi,
        order: WorkOrder,
        crew: Crew,
        jobs: list[Manifest],
        stop: Stop,
        told: Callable[[WorkerNews], None],
    ) -> None:
        selector = crew_selector(crew.name)
        async with AsyncExitStack() as stack:
            pods = await stack.enter_async_context(PodInformer(api, selector))
            await pods.wait_synced(_SYNC_S)
            policy = FailurePolicy(schedule_grace_s=self.config.schedule_grace_s)
            waiter = await stack.enter_async_context(PodWaiter(api, pods, policy=policy))
            names = [job["metadata"]["name"] for job in jobs]
            shift = Shift(api, order, names, pods=pods, waiter=waiter, told=told)
            stack.callback(pods.subscribe(shift.take_pod))
            await asyncio.gather(*(api.create(JOBS, job) for job in jobs))
            await _first(shift.last(stop), watch_jobs(api, selector, shift.take_jobs))

    async def _connect(self) -> ClusterApi:
        config = self.config
        return await ClusterApi.open(
            kubeconfig=config.kubeconfig, context=config.context, namespace=config.namespace
        )


async def _first(*several: Coroutine[Any, Any, None]) -> None:
    """Until one of them ends, as which this ends; the others are cancelled."""
    tasks = [asyncio.create_task(one) for one in several]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await unbroken(asyncio.gather(*tasks, return_exceptions=True))


def open_workforce(config: WorkforceConfig | None = None) -> KubernetesWorkforce:
    """The workforce; it connects when it is first used. Raises ConfigError."""
    if find_spec("kubernetes") is None:
        raise ConfigError(
            "the workforce kubernetes needs the official client", hint="pip install 'orchard-env[kubernetes]'"
        )
    if config is None:
        raise ConfigError(
            "the workforce kubernetes needs an image", hint="--on kubernetes:IMAGE --worker-option claim=NAME"
        )
    return KubernetesWorkforce(config)


def _own_pod(api: ClusterApi) -> Manifest | None:
    """The pod that the coordinator runs in, as the downward API told it: the Jobs go with it."""
    name, uid = os.environ.get("ORCHARD_POD_NAME"), os.environ.get("ORCHARD_POD_UID")
    if not name or not uid or os.environ.get("ORCHARD_POD_NAMESPACE") != api.namespace:
        return None
    return {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid}
