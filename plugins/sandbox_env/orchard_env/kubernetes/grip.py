"""Leading by a Lease object of the cluster, as its own controllers do.

Times written by others are never compared with our clock: another's hold has run out when its Lease has not
changed for as long as it says it lasts, measured here. Every change is conditional on the version that was
read.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from orchard_env.kubernetes.api import ClusterApi
from orchard_env.kubernetes.faults import ObjectChanged, ObjectExists, ObjectMissing
from orchard_env.kubernetes.resources import LEASES, Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    version: str
    """The Lease's resourceVersion."""
    since: float
    """Since when it has been seen unchanged, by our clock."""


class KubernetesGrip:
    """Honours the service's `Grip`. `confirm` reads the Lease itself; what it cannot do is delete in the same
    step, and so whoever deletes names the object's uid: a second deletion finds nothing, or something else,
    and does nothing."""

    def __init__(self, api: ClusterApi, name: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._api = api
        self._name = name
        self._clock = clock
        self._seen: _Seen | None = None

    async def grasp(self, holder: str, ttl_s: float) -> int | None:
        """Take hold, or keep hold, for `ttl_s`; gives the number of the term, None while another holds it.
        Raises SandboxUnavailable."""
        try:
            found = await self._api.get(LEASES, self._name)
            if found is None:
                made = await self._api.create(LEASES, self._manifest(holder, ttl_s, term=1))
                return _term(made)
            if not self._free(found, holder):
                return None
            return await self._take(found, holder, ttl_s)
        except (ObjectExists, ObjectChanged, ObjectMissing):
            return None  # another was faster

    async def _take(self, found: Manifest, holder: str, ttl_s: float) -> int:
        term = _term(found) + (_holder(found) != holder)
        wanted = self._manifest(holder, ttl_s, term=term)
        wanted["metadata"]["resourceVersion"] = found["metadata"]["resourceVersion"]
        wanted["spec"]["acquireTime"] = (
            found["spec"].get("acquireTime") if _holder(found) == holder else _now()
        )
        return _term(await self._api.replace(LEASES, self._name, wanted))

    def _free(self, found: Manifest, holder: str) -> bool:
        version = str(found["metadata"]["resourceVersion"])
        if self._seen is None or self._seen.version != version:
            self._seen = _Seen(version=version, since=self._clock())
        if _holder(found) in ("", holder):
            return True
        lasts_s = float(found["spec"].get("leaseDurationSeconds") or 0)
        return self._clock() - self._seen.since > lasts_s

    async def let_go(self, holder: str, term: int) -> None:
        """Leave it to another; fine when it is another's by now. Raises SandboxUnavailable."""
        found = await self._api.get(LEASES, self._name)
        if found is None or (_holder(found), _term(found)) != (holder, term):
            return
        found["spec"]["holderIdentity"] = ""
        try:
            await self._api.replace(LEASES, self._name, found)
        except (ObjectChanged, ObjectMissing):
            return  # it is another's already

    async def confirm(self, holder: str, term: int, item: str, ttl_s: float) -> bool:
        """Whether this is still the term. Raises SandboxUnavailable."""
        found = await self._api.get(LEASES, self._name)
        return found is not None and (_holder(found), _term(found)) == (holder, term)

    def _manifest(self, holder: str, ttl_s: float, *, term: int) -> Manifest:
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self._name},
            "spec": {
                "holderIdentity": holder,
                "leaseDurationSeconds": max(1, round(ttl_s)),
                "acquireTime": _now(),
                "renewTime": _now(),
                "leaseTransitions": term,
            },
        }


def _holder(lease: Manifest) -> str:
    return str(lease["spec"].get("holderIdentity") or "")


def _term(lease: Manifest) -> int:
    return int(lease["spec"].get("leaseTransitions") or 0)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
