"""Where the sandboxes of a cluster live: pods of one namespace."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from orchard_core import (
    CreationStep,
    NewPlace,
    OrchardError,
    SandboxExists,
    SandboxGone,
    SandboxSpec,
    Snapshot,
    StandingSandbox,
    note_step,
    unbroken,
)
from orchard_env.kubernetes import labels
from orchard_env.kubernetes.config import KubernetesConfig
from orchard_env.kubernetes.demands import check_demands
from orchard_env.kubernetes.manifest import pod_manifest
from orchard_env.kubernetes.place import Fill, PodPlace
from orchard_env.kubernetes.pods import PodView
from orchard_env.kubernetes.resources import PODS, Manifest, Selector
from orchard_env.kubernetes.session import ClusterSession
from orchard_env.kubernetes.snapshots.saving import Snapshots
from orchard_env.kubernetes.warm.claim import Claimed
from orchard_env.kubernetes.warm.pools import WarmPools
from orchard_env.kubernetes.warm.told import PoolObserver, PoolStats, Unobserved

_LEAVING_S = 30.0
_STANDING_S = 5.0


class PodPlaces:
    """Honours AdoptingPlaces and SavingPlaces. Connects when it is first needed."""

    def __init__(self, config: KubernetesConfig, provider: str = "kubernetes") -> None:
        """Raises ConfigError for a storage of snapshots that cannot be opened."""
        self._config = config
        self._snapshots = Snapshots(config.snapshots, provider)
        self._opening = asyncio.Lock()
        self._session: ClusterSession | None = None
        self._warm: WarmPools | None = None
        self._places: set[PodPlace] = set()
        self.leads: Callable[[], bool] | None = None
        """Whether this process fills the pools, asked again and again; None: as the configuration says."""
        self.observer: PoolObserver = Unobserved()
        """Set before the first use."""

    async def session(self) -> ClusterSession:
        """What all places share. Raises ConfigError, SandboxUnavailable."""
        async with self._opening:
            if self._session is None:
                session = await ClusterSession.open(self._config)
                self._warm = WarmPools(session, leads=self._leads, observer=self.observer)
                self._session = session
            return self._session

    def _leads(self) -> bool:
        return self._config.fill_pools if self.leads is None else self.leads()

    @property
    def pooling(self) -> bool:
        """Whether there are any pools to fill."""
        return bool(self._config.pools)

    async def _pools(self) -> WarmPools:
        await self.session()
        assert self._warm is not None
        return self._warm

    def pools(self) -> tuple[PoolStats, ...]:
        """The pools as this process sees them; none before it is connected."""
        return () if self._warm is None else self._warm.stats()

    async def place(self, sandbox_id: str, spec: SandboxSpec) -> PodPlace:
        """See Places. Two calls of the API server are all that a sandbox costs: this one, and its end."""
        return await self._place(sandbox_id, spec, None)

    async def _place(self, sandbox_id: str, spec: SandboxSpec, fill: Fill | None) -> PodPlace:
        check_demands(spec, self._config)
        session, warm = await self.session(), await self._pools()
        if warm.pod_of(sandbox_id) is not None:
            raise _taken(sandbox_id)
        claimed = await warm.claim(sandbox_id, spec)
        if claimed is not None:
            note_step(CreationStep.POOL_HIT)
            return self._kept(session, spec, claimed.pod, claimed, fill)
        session.held.add(sandbox_id)
        try:
            pod = await self._create(session, sandbox_id, spec, warm.shape(spec))
        except BaseException:
            session.held.discard(sandbox_id)
            raise
        return self._kept(session, spec, pod, None, fill)

    async def _create(
        self, session: ClusterSession, sandbox_id: str, spec: SandboxSpec, missed: str | None
    ) -> PodView:
        manifest = pod_manifest(sandbox_id, spec, self._config, session.owner, memory_mb=None)
        if missed is not None:
            note_step(CreationStep.POOL_MISS)
            manifest["metadata"]["labels"][labels.MISSED] = missed
        try:
            return await _make(session, manifest)
        except SandboxExists:
            await self._wait_for_leaving(session, sandbox_id)
            return await _make(session, manifest)

    async def _wait_for_leaving(self, session: ClusterSession, name: str) -> None:
        """Until a sandbox of this name that is being removed, or that has ended and was this driver's, has
        gone. Raises SandboxExists for one that is not."""
        found = await session.api.get(PODS, name)
        pod = None if found is None else PodView.read(found)
        if pod is not None and not _leaves(pod, session.driver):
            raise _taken(name)
        if pod is not None:
            uid = pod.uid
            if pod.deleting is None:
                await session.remove(name, uid)
            try:
                await session.pods.until(name, lambda now: now is None or now.uid != uid, _LEAVING_S)
            except TimeoutError:
                raise _taken(name) from None

    def _kept(
        self,
        session: ClusterSession,
        spec: SandboxSpec,
        pod: PodView,
        claimed: Claimed | None = None,
        fill: Fill | None = None,
    ) -> PodPlace:
        place = PodPlace(session, spec, pod, client=None if claimed is None else claimed.client, fill=fill)
        self._places = {one for one in self._places if not one.destroyed} | {place}
        return place

    async def standing(self) -> list[StandingSandbox]:
        """See AdoptingProvider: asked of the server, whose answer is whole or none, and not waited for long:
        whoever asked may ask again."""
        session = await self.session()
        pods = await session.api.list(PODS, labels.SANDBOXES, patience_s=_STANDING_S)
        found = [PodView.read(one) for one in pods]
        told = (labels.standing(pod) for pod in found if labels.stands(pod))
        return [one for one in told if one is not None]

    async def find(self, sandbox_id: str) -> tuple[PodPlace, StandingSandbox]:
        """See AdoptingPlaces."""
        session, warm = await self.session(), await self._pools()
        found = await session.api.get(PODS, warm.pod_of(sandbox_id) or sandbox_id)
        if found is None:
            found = await _claimed_just_now(session, sandbox_id)
        pod = None if found is None else PodView.read(found)
        told = labels.standing(pod) if pod is not None and labels.stands(pod) else None
        if found is None or pod is None or told is None or told.id != sandbox_id:
            raise SandboxGone(f"no sandbox {sandbox_id} stands in the namespace {session.api.namespace}")
        session.pods.learn(found)
        # By the server's clock alone: what ours tells, or another process's, is nothing to it.
        age_s = max(0.0, session.api.now() - told.created)
        return self._kept(session, told.spec, pod), told.model_copy(update={"age_s": age_s})

    async def save(self, place: NewPlace, spec: SandboxSpec) -> Snapshot:
        """See SavingPlaces. Nothing is stopped meanwhile: a file that is being written may be torn."""
        assert isinstance(place, PodPlace)
        return await self._snapshots.save(place.root_client(), spec)

    async def restore(self, sandbox_id: str, spec: SandboxSpec, snapshot: Snapshot) -> PodPlace:
        """See SavingPlaces."""
        check_demands(spec, self._config)
        fill = await self._snapshots.fill(snapshot, spec)
        try:
            return await self._place(sandbox_id, spec, fill)
        except BaseException:
            fill.end()
            raise

    async def discard(self, snapshot: Snapshot) -> None:
        """See SavingPlaces."""
        await self._snapshots.discard(snapshot)

    async def discard_own(self) -> None:
        """Remove the snapshots that end with their provider."""
        await self._snapshots.discard_own()

    async def close(self) -> None:
        """See Places. What still stands was released."""
        async with self._opening:
            session, self._session = self._session, None
            warm, self._warm = self._warm, None
            if session is None or warm is None:
                return
            left = [place for place in self._places if place.in_use]
            self._places = set()
            await asyncio.gather(*(place.let_go() for place in left))
            with contextlib.suppress(OrchardError):  # then its lease runs out, and they are reaped
                await warm.close(drain=self._config.driver is None and not left)
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


async def _claimed_just_now(session: ClusterSession, sandbox_id: str) -> Manifest | None:
    """A pod that another process claimed for a sandbox, so lately that the watch has not told it."""
    if labels.label_value_fault(sandbox_id):
        return None
    wanted = Selector.of({labels.MANAGED_BY: labels.MANAGER, labels.SANDBOX: sandbox_id})
    async for page in session.api.pages(PODS, wanted, resource_version="0"):
        for found in page.items:
            return found
    return None


def _leaves(pod: PodView, driver: str) -> bool:
    """Whether the name of a sandbox will be free. One whose deletion was cut short, when its agent had ended
    and its pod not, is kept for a while, so that its end can be told, and is in nobody's way."""
    ended = pod.phase in labels.ENDED and pod.labels.get(labels.DRIVER) == driver
    return labels.is_ours(pod) and (pod.deleting is not None or ended)


def _taken(name: str) -> SandboxExists:
    return SandboxExists(
        f"a pod named {name} stands already", hint="close that sandbox first, or take another name"
    )
