"""A driver's sign of life: one Lease object, renewed for as long as the process lives."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from datetime import UTC, datetime

from orchard_core import OrchardError
from orchard_env.kubernetes import labels
from orchard_env.kubernetes.api import ClusterApi
from orchard_env.kubernetes.faults import ObjectExists, ObjectMissing
from orchard_env.kubernetes.resources import LEASES, Manifest

_log = logging.getLogger(__name__)
_PREFIX = "orchard-driver-"


def lease_name(driver: str) -> str:
    """The Lease of a driver."""
    return f"{_PREFIX}{driver}"


def driver_of(lease: Manifest) -> str:
    """The driver whose Lease it is."""
    return str(lease["metadata"]["name"]).removeprefix(_PREFIX)


class DriverLease:
    """Held by every process of one driver's name; each renews it."""

    def __init__(self, api: ClusterApi, driver: str, lasts_s: float, owner: Manifest | None = None) -> None:
        """`owner`: with what the cluster removes the Lease, such as the driver's own pod."""
        self._api = api
        self._name = lease_name(driver)
        self._driver = driver
        self._lasts_s = lasts_s
        self._owner = owner
        self._renewing: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Take it, and renew it from now on. Raises SandboxUnavailable."""
        await self._take()
        self._renewing = asyncio.create_task(self._renew())

    async def _take(self) -> None:
        try:
            await self._api.create(LEASES, self._manifest())
        except ObjectExists:
            await self._touch()

    async def _touch(self) -> None:
        await self._api.patch(LEASES, self._name, {"spec": {"renewTime": _now()}})

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self._lasts_s / 3)
            try:
                await self._touch()
            except ObjectMissing:
                _log.warning("the lease %s was taken away: its driver seemed dead", self._name)
                with contextlib.suppress(OrchardError):
                    await self._take()
            except OrchardError as error:
                _log.warning("the lease %s could not be renewed: %s", self._name, error.message)

    def _manifest(self) -> Manifest:
        about: Manifest = {
            "name": self._name,
            "labels": {labels.MANAGED_BY: labels.MANAGER, labels.DRIVER: self._driver},
        }
        if self._owner is not None:
            about["ownerReferences"] = [self._owner]
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": about,
            "spec": {
                "holderIdentity": self._driver,
                "leaseDurationSeconds": max(1, round(self._lasts_s)),
                "renewTime": _now(),
            },
        }

    async def stop(self) -> None:
        """Renew it no more; it runs out."""
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.gather(self._renewing, return_exceptions=True)
            self._renewing = None

    async def give_up(self) -> None:
        """Remove it: nothing of this driver is left."""
        await self.stop()
        with contextlib.suppress(OrchardError):
            await self._api.delete(LEASES, self._name)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
