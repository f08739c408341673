"""Where the sandboxes of a cluster live: pods of one namespace."""

from __future__ import annotations

import asyncio

from orchard_core import (
    OrchardError,
    SandboxExists,
    SandboxGone,
    SandboxSpec,
    StandingSandbox,
    unbroken,
)
from orchard_env.kubernetes import labels
from orchard_env.kubernetes.config import KubernetesConfig
from orchard_env.kubernetes.demands import check_demands
from orchard_env.kubernetes.manifest import pod_manifest
from orchard_env.kubernetes.place import PodPlace
from orchard_env.kubernetes.pods import PodView
from orchard_env.kubernetes.resources import PODS, Manifest
from orchard_env.kubernetes.session import ClusterSession

_LEAVING_S = 30.0


class PodPlaces:
    """Honours AdoptingPlaces. Connects when it is first needed."""

    def __init__(self, config: KubernetesConfig) -> None:
        self._config = config
        self._opening = asyncio.Lock()
        self._session: ClusterSession | None = None
        self._places: set[PodPlace] = set()

    async def session(self) -> ClusterSession:
        """What all places share. Raises ConfigError, SandboxUnavailable."""
        async with self._opening:
            if self._session is None:
                self._session = await ClusterSession.open(self._config)
            return self._session

    async def place(self, sandbox_id: str, spec: SandboxSpec) -> PodPlace:
        """See Places. Two calls of the API server are all that a sandbox costs: this one, and its end."""
        check_demands(spec, self._config)
        session = await self.session()
        session.held.add(sandbox_id)
        try:
            pod = await self._create(session, sandbox_id, spec)
        except BaseException:
            session.held.discard(sandbox_id)
            raise
        return self._kept(session, spec, pod)

    async def _create(self, session: ClusterSession, sandbox_id: str, spec: SandboxSpec) -> PodView:
        manifest = pod_manifest(sandbox_id, spec, self._config, session.owner, memory_mb=None)
        try:
            return await _make(session, manifest)
        except SandboxExists:
            await self._wait_for_leaving(session, sandbox_id)
            return await _make(session, manifest)

    async def _wait_for_leaving(self, session: ClusterSession, name: str) -> None:
        """Until a sandbox of this name that is being removed has gone. Raises SandboxExists for one that is
        not."""
        found = await session.api.get(PODS, name)
        pod = None if found is None else PodView.read(found)
        if pod is not None and (pod.deleting is None or not labels.is_ours(pod)):
            raise _taken(name)
        if pod is not None:
            uid = pod.uid
            try:
                await session.pods.until(name, lambda now: now is None or now.uid != uid, _LEAVING_S)
            except TimeoutError:
                raise _taken(name) from None

    def _kept(self, session: ClusterSession, spec: SandboxSpec, pod: PodView) -> PodPlace:
        place = PodPlace(session, spec, pod)
        self._places = {one for one in self._places if not one.destroyed} | {place}
        return place

    async def standing(self) -> list[StandingSandbox]:
        """See AdoptingProvider: asked of the server, whose answer is whole or none."""
        session = await self.session()
        found = [PodView.read(one) for one in await session.api.list(PODS, labels.SANDBOXES)]
        told = (labels.standing(pod) for pod in found if labels.stands(pod))
        return [one for one in told if one is not None]

    async def find(self, sandbox_id: str) -> tuple[PodPlace, StandingSandbox]:
        """See AdoptingPlaces."""
        session = await self.session()
        found = await session.api.get(PODS, sandbox_id)
        pod = None if found is None else PodView.read(found)
        told = labels.standing(pod) if pod is not None and labels.stands(pod) else None
        if found is None or pod is None or told is None:
            raise SandboxGone(f"no sandbox {sandbox_id} stands in the namespace {session.api.namespace}")
        session.pods.learn(found)
        return self._kept(session, told.spec, pod), told

    async def close(self) -> None:
        """See Places. What still stands was released."""
        async with self._opening:
            session, self._session = self._session, None
            if session is None:
                return
            left = [place for place in self._places if place.in_use]
            self._places = set()
            await asyncio.gather(*(place.let_go() for place in left))
            await session.close(released=bool(left))


async def _make(session: ClusterSession, manifest: Manifest) -> PodView:
    """A pod, or none: also when the caller is cancelled meanwhile."""
    making = asyncio.ensure_future(session.create(manifest))
    try:
        return await asyncio.shield(making)
    except asyncio.CancelledError:
        await unbroken(_undo(session, making))
        raise


async def _undo(session: ClusterSession, making: asyncio.Future[PodView]) -> None:
    """Remove a pod whose creator was cancelled. One that a failed call made is found by the session."""
    try:
        pod = await making
    except (OrchardError, asyncio.CancelledError):
        return
    await session.remove(pod.name, pod.uid)


def _taken(name: str) -> SandboxExists:
    return SandboxExists(
        f"a pod named {name} stands already", hint="close that sandbox first, or take another name"
    )
