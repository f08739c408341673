"""Taking a pod that waits: one conditional change of it, and an agent that nobody knew before."""

from __future__ import annotations

import asyncio
import logging
import math
import random
from collections.abc import Iterable
from dataclasses import dataclass

from orchard_core import (
    AgentClient,
    AgentEndpoint,
    OrchardError,
    SandboxSpec,
    SandboxUnavailable,
    ServiceOverloaded,
    outlet_environment,
    renew_agent,
    unbroken,
)
from orchard_env.kubernetes import labels
from orchard_env.kubernetes.faults import ObjectChanged, ObjectMissing
from orchard_env.kubernetes.manifest import deadline_s
from orchard_env.kubernetes.pods import PodView
from orchard_env.kubernetes.resources import PODS, Manifest
from orchard_env.kubernetes.session import ClusterSession
from orchard_env.kubernetes.tokens import derive_token

_TRIES = 8
_RENEW_S = 10.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """A pod that is a sandbox now."""

    pod: PodView
    """Its labels say whose."""
    client: AgentClient
    """Of its new agent, of which only this process and who knows the seed know the token."""


def can_be_claimed(pod: PodView) -> bool:
    """Whether its agent should answer."""
    return labels.is_waiting(pod) and pod.started and bool(pod.ip) and pod.deleting is None


class Claims:
    """Takes pods for one process. Any number of processes may do so: the server lets one of them win."""

    def __init__(self, session: ClusterSession) -> None:
        self._session = session
        self._taking: set[str] = set()
        self.lost = 0
        """Pods that another was quicker to take, so far."""

    async def take(self, sandbox_id: str, spec: SandboxSpec, waiting: Iterable[PodView]) -> Claimed | None:
        """One of them, or None when none can be had. Raises SandboxUnavailable, ServiceOverloaded."""
        free = [pod for pod in waiting if can_be_claimed(pod) and pod.name not in self._taking]
        random.shuffle(free)  # claimers who begin at the same end would meet at each
        for pod in free[:_TRIES]:
            if pod.name in self._taking:
                continue
            self._taking.add(pod.name)
            try:
                mine = await self._mark(pod, sandbox_id, spec)
                claimed = None if mine is None else await self._renew(mine, spec)
            finally:
                self._taking.discard(pod.name)
            if claimed is not None:
                return claimed
        return None

    async def _mark(self, pod: PodView, sandbox_id: str, spec: SandboxSpec) -> PodView | None:
        """Make the pod this sandbox, or learn that it is another's; whole though the caller be cancelled."""
        held = self._session.held
        held.add(pod.name)  # known before its label says so: see ClusterSession's strays
        marking = asyncio.ensure_future(self._patch(pod, sandbox_id, spec))
        try:
            mine = await asyncio.shield(marking)
        except asyncio.CancelledError:
            await unbroken(self._undo(marking))
            held.discard(pod.name)
            raise
        except (SandboxUnavailable, ServiceOverloaded):
            held.discard(pod.name)
            raise
        except OrchardError as error:
            _log.warning("the pod %s cannot be claimed: %s", pod.name, error.message)
            mine = None
        if mine is None:
            held.discard(pod.name)
        return mine

    async def _patch(self, pod: PodView, sandbox_id: str, spec: SandboxSpec) -> PodView | None:
        api = self._session.api
        for _ in range(2):
            try:
                found = await api.patch(PODS, pod.name, self._claim(pod, sandbox_id, spec))
                return self._session.pods.learn(found)
            except ObjectMissing:
                return None
            except ObjectChanged:
                now = await api.get(PODS, pod.name)
            if now is None or now["metadata"]["uid"] != pod.uid:
                return None
            pod = self._session.pods.learn(now)
            if not can_be_claimed(pod):
                # An answer of our own may have been lost on its way.
                if (labels.sandbox_id(pod), pod.labels.get(labels.DRIVER)) == (
                    sandbox_id,
                    self._session.driver,
                ):
                    return pod
                self.lost += 1
                return None
        return None

    def _claim(self, pod: PodView, sandbox_id: str, spec: SandboxSpec) -> Manifest:
        """What makes it that sandbox, if it is still as it was seen: the whole claim is this."""
        now = self._session.api.now()
        about: Manifest = {
            "uid": pod.uid,
            "resourceVersion": pod.resource_version,
            "labels": {
                **labels.spec_labels(spec),
                labels.SANDBOX: sandbox_id,
                labels.DRIVER: self._session.driver,
            },
            "annotations": {
                labels.SPEC: labels.spec_annotation(spec),
                labels.CREATED: f"{now:.3f}",
                # Written before it is so, as in every restart of an agent.
                labels.GENERATION: "1",
            },
        }
        if self._session.owner.reference is not None:
            about["ownerReferences"] = [self._session.owner.reference]
        # Counted from the pod's start, which was at its creation at the earliest.
        life = math.ceil(max(0.0, now - pod.created)) + deadline_s(spec, self._session.config)
        return {"metadata": about, "spec": {"activeDeadlineSeconds": min(life, 2**31 - 1)}}

    async def _undo(self, marking: asyncio.Future[PodView | None]) -> None:
        try:
            mine = await marking
        except (OrchardError, asyncio.CancelledError):
            return
        if mine is not None:
            await self._session.remove(mine.name, mine.uid)

    async def _renew(self, pod: PodView, spec: SandboxSpec) -> Claimed | None:
        """A new agent with a new token, and with the environment of the spec. A pod that has none to give is
        removed."""
        seed, told = self._session.seed, labels.sandbox_id(pod)
        old = AgentEndpoint(
            url=labels.agent_url(pod, self._session.config.agent_port),
            token=derive_token(seed, pod.name, pod.uid),
            sandbox_id=pod.name,
        )
        env = {**outlet_environment(spec.network), **spec.env}
        try:
            client = await renew_agent(old, derive_token(seed, told, pod.uid, 1), env=env, timeout=_RENEW_S)
        except OrchardError as error:
            _log.warning("the pod %s of a pool was of no use: %s", pod.name, error.message)
            await unbroken(self._drop(pod))
            return None
        except BaseException:
            await unbroken(self._drop(pod))
            raise
        return Claimed(pod=pod, client=client)

    async def _drop(self, pod: PodView) -> None:
        await self._session.remove(pod.name, pod.uid)
        self._session.held.discard(pod.name)
