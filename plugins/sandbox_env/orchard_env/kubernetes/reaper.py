"""What dead drivers left behind is removed: only what is provably ours, and whose driver is provably dead."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Container
from dataclasses import dataclass

from orchard_core import OrchardError
from orchard_env.kubernetes import labels
from orchard_env.kubernetes.api import ClusterApi
from orchard_env.kubernetes.faults import ObjectChanged
from orchard_env.kubernetes.informer import PodInformer
from orchard_env.kubernetes.lease import driver_of, lease_name
from orchard_env.kubernetes.pods import PodView
from orchard_env.kubernetes.resources import LEASES, PODS, Manifest

_log = logging.getLogger(__name__)
_ENDED_KEPT_S = 300.0
_GAP = 0.7
"""Of a lease's time; a longer pause between two looks, as when this process was stopped, tells of nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sign:
    renewed: str
    """renewTime as the driver wrote it; empty: it has no Lease. Never read as a time: clocks differ."""
    since: float
    """Since when it has been seen unchanged, by our own monotonic clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaped:
    """What one sweep did."""

    drivers: tuple[str, ...] = ()
    """Dead ones."""
    sandboxes: tuple[str, ...] = ()
    """Removed."""


class Reaper:
    """Sweeps a namespace. Any number may do so at once."""

    def __init__(
        self,
        api: ClusterApi,
        pods: PodInformer,
        *,
        driver: str,
        lasts_s: float,
        held: Container[str] = frozenset(),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`driver`, our own name, is never dead. `held`: the sandboxes that this process has in its hands.
        `clock` is a seam."""
        self._api = api
        self._pods = pods
        self._driver = driver
        self._lasts_s = lasts_s
        self._held = held
        self._clock = clock
        self._signs: dict[str, _Sign] = {}
        self._ended: dict[str, float] = {}
        self._looked = clock()

    async def run(self) -> None:
        """Sweep for ever."""
        while True:
            await asyncio.sleep(self._lasts_s / 3)
            try:
                reaped = await self.sweep()
            except OrchardError as error:
                _log.warning("nothing was reaped: %s", error.message)
            else:
                if reaped.sandboxes or reaped.drivers:
                    _log.info("reaped %s of dead drivers %s", reaped.sandboxes, reaped.drivers)

    async def sweep(self) -> Reaped:
        """Look once. What could not be listed, or is old news, changes nothing, and a driver counts as silent
        only over time in which it was being watched. Raises SandboxUnavailable."""
        if self._clock() - self._looked > self._lasts_s * _GAP:
            self._signs.clear()
        try:
            leases = {driver_of(one): one for one in await self._api.list(LEASES, labels.SANDBOXES)}
        except BaseException:
            self._signs.clear()
            raise
        self._looked = self._clock()
        if not self._pods.synced or self._pods.stale_s > self._lasts_s:
            self._signs.clear()
            return Reaped()
        ours = [pod for pod in self._pods if labels.is_ours(pod) or labels.is_waiting(pod)]
        dead = [name for name in self._silent(leases, ours) if await self._bury(name, leases.get(name))]
        doomed = [pod for pod in ours if pod.labels.get(labels.DRIVER) in dead] + self._long_ended(ours)
        removed = [pod for pod in doomed if pod.deleting is None and await self._remove(pod)]
        return Reaped(drivers=tuple(dead), sandboxes=tuple(map(labels.sandbox_id, removed)))

    def _silent(self, leases: dict[str, Manifest], ours: list[PodView]) -> list[str]:
        """Drivers that gave no sign of life for as long as a lease lasts."""
        known = {*leases, *(pod.labels.get(labels.DRIVER, "") for pod in ours)} - {self._driver, ""}
        now = self._clock()
        signs: dict[str, _Sign] = {}
        for name in known:
            renewed = ((leases.get(name) or {}).get("spec") or {}).get("renewTime") or ""
            last = self._signs.get(name)
            signs[name] = last if last and last.renewed == renewed else _Sign(renewed=renewed, since=now)
        self._signs = signs
        return [name for name, sign in signs.items() if now - sign.since >= self._lasts_s]

    async def _bury(self, driver: str, lease: Manifest | None) -> bool:
        """Take a dead driver's lease away, unless it is renewed this very moment: then it is not dead."""
        if lease is None:
            return await self._api.get(LEASES, lease_name(driver)) is None
        about = lease["metadata"]
        try:
            await self._api.delete(
                LEASES, about["name"], uid=about["uid"], resource_version=about["resourceVersion"]
            )
        except ObjectChanged:
            self._signs.pop(driver, None)
            return False
        return True

    def _long_ended(self, ours: list[PodView]) -> list[PodView]:
        """Our own that have ended and that nobody here holds: a while later, nobody will ask why."""
        now = self._clock()
        seen = {
            pod.uid: self._ended.get(pod.uid, now)
            for pod in ours
            if pod.labels.get(labels.DRIVER) == self._driver
            and labels.is_ours(pod)
            and not labels.stands(pod)
            and pod.name not in self._held
        }
        self._ended = seen
        return [pod for pod in ours if now - seen.get(pod.uid, now) > _ENDED_KEPT_S]

    async def _remove(self, pod: PodView) -> bool:
        """That very pod, or nothing. One that waits in a pool may be claimed this moment."""
        version = pod.resource_version if labels.is_waiting(pod) else None
        try:
            return await self._api.delete(PODS, pod.name, uid=pod.uid, resource_version=version)
        except ObjectChanged:
            return False
