"""A cluster's API server, spoken to in raw JSON over the official client's own transport."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from orchard_env.kubernetes.resources import Manifest, Page, PatchType, Resource, Selector, WatchEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiLimits:
    """How hard the server may be pressed, and how long a call may take."""

    per_s: float = 100.0
    """Calls a second on the average, all callers together."""
    burst: int = 200
    """Calls that may go at once after a quiet time."""
    call_s: float = 30.0
    """A try that has no answer after this many seconds is lost."""
    patience_s: float = 90.0
    """A call is repeated, where that does no harm, until this many seconds have passed."""


class ClusterApi:
    """One connection pool, one rate limit and one set of credentials, for all callers of a process.

    Every call raises, besides what it names: SandboxUnavailable (no server, no credentials, or a right is
    missing, which is named), ServiceOverloaded (429 or 5xx until the patience ran out), QuotaExceeded,
    SpecRefused (400, 413, 422, or an admission policy; in the server's own words).
    """

    namespace: str
    """Where namespaced objects lie unless a call says otherwise."""

    @classmethod
    async def open(
        cls,
        *,
        kubeconfig: str | None = None,
        context: str | None = None,
        namespace: str | None = None,
        limits: ApiLimits | None = None,
    ) -> Self:
        """Connect as KUBECONFIG (or the file given) says, or as the pod's service account inside a cluster.

        `namespace` None: that of the context or of the pod, else `default`. Raises ConfigError when the
        extra is missing or no configuration is found.
        """
        raise NotImplementedError

    async def create(
        self, kind: Resource, manifest: Manifest, *, namespace: str | None = None, dry_run: bool = False
    ) -> Manifest:
        """Create once, however often it has to be sent. Raises ObjectExists."""
        raise NotImplementedError

    async def get(self, kind: Resource, name: str, *, namespace: str | None = None) -> Manifest | None:
        """The object, or None."""
        raise NotImplementedError

    async def list(
        self, kind: Resource, selector: Selector | None = None, *, namespace: str | None = None
    ) -> list[Manifest]:
        """All of them, by pages."""
        raise NotImplementedError

    def pages(
        self,
        kind: Resource,
        selector: Selector | None = None,
        *,
        namespace: str | None = None,
        size: int = 500,
        resource_version: str = "",
    ) -> AsyncIterator[Page]:
        """One consistent LIST in pages; `resource_version` "0" takes the server's cache. Raises HistoryGone."""
        raise NotImplementedError

    def watch(
        self,
        kind: Resource,
        selector: Selector | None = None,
        *,
        resource_version: str,
        namespace: str | None = None,
        silent_s: float = 60.0,
        lasts_s: float = 300.0,
    ) -> AsyncIterator[WatchEvent]:
        """What changes from there on; ends when the server ends it or nothing came for `silent_s`.
        Raises HistoryGone."""
        raise NotImplementedError

    async def patch(
        self,
        kind: Resource,
        name: str,
        patch: Manifest | Sequence[Manifest],
        *,
        kind_of_patch: PatchType = PatchType.MERGE,
        subresource: str = "",
        namespace: str | None = None,
    ) -> Manifest:
        """Change an object; a `metadata.resourceVersion` in a merge patch makes it conditional.
        Raises ObjectMissing, ObjectChanged."""
        raise NotImplementedError

    async def replace(
        self, kind: Resource, name: str, manifest: Manifest, *, namespace: str | None = None
    ) -> Manifest:
        """PUT; conditional if the manifest has a resourceVersion. Raises ObjectMissing, ObjectChanged."""
        raise NotImplementedError

    async def delete(
        self,
        kind: Resource,
        name: str,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        grace_s: float | None = None,
        namespace: str | None = None,
    ) -> bool:
        """False when there was nothing to delete. Raises ObjectChanged when it is not that uid or version."""
        raise NotImplementedError

    async def delete_all(
        self,
        kind: Resource,
        selector: Selector,
        *,
        grace_s: float | None = None,
        namespace: str | None = None,
    ) -> None:
        """Delete a whole selection in one call."""
        raise NotImplementedError

    async def evict(self, pod: str, *, namespace: str | None = None) -> None:
        """Ask for a pod's eviction, as a drain of its node does. Raises ObjectMissing."""
        raise NotImplementedError

    async def allowed(self, verb: str, kind: Resource, *, namespace: str | None = None) -> bool:
        """May these credentials do that? (SelfSubjectAccessReview.)"""
        raise NotImplementedError

    async def version(self) -> tuple[int, int]:
        """The server's version, such as (1, 31)."""
        raise NotImplementedError

    @property
    def calls(self) -> Mapping[str, int]:
        """Requests sent so far, repeats included, as `VERB plural`."""
        raise NotImplementedError

    async def close(self) -> None:
        """Close the connections. Watches end."""
        raise NotImplementedError
