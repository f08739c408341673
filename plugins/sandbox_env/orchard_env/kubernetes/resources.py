"""The kinds of object that are spoken of, and what a call about them says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

Manifest = dict[str, Any]
"""An object as Kubernetes writes it in JSON. It stays inside this package."""

PREFIX = "orchard.dev/"
"""Of every label and annotation that is ours."""
REQUEST = f"{PREFIX}request"
"""Annotation by which a create that is sent twice knows its own object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One kind of object."""

    group: str
    """`/api/v1`, or `/apis/GROUP/VERSION`."""
    plural: str
    """As it stands in a path, such as `pods`."""
    namespaced: bool = True
    """It lies in a namespace."""

    def path(self, namespace: str, name: str = "", subresource: str = "") -> str:
        """Path of the collection, or of one object, or of a part of it."""
        where = f"/namespaces/{namespace}" if self.namespaced else ""
        parts = [f"{self.group}{where}/{self.plural}", name, subresource]
        return "/".join(part for part in parts if part)


PODS = Resource(group="/api/v1", plural="pods")
SECRETS = Resource(group="/api/v1", plural="secrets")
CONFIG_MAPS = Resource(group="/api/v1", plural="configmaps")
EVENTS = Resource(group="/api/v1", plural="events")
NAMESPACES = Resource(group="/api/v1", plural="namespaces", namespaced=False)
NODES = Resource(group="/api/v1", plural="nodes", namespaced=False)
QUOTAS = Resource(group="/api/v1", plural="resourcequotas")
SERVICES = Resource(group="/api/v1", plural="services")
VOLUME_CLAIMS = Resource(group="/api/v1", plural="persistentvolumeclaims")
JOBS = Resource(group="/apis/batch/v1", plural="jobs")
LEASES = Resource(group="/apis/coordination.k8s.io/v1", plural="leases")
NETWORK_POLICIES = Resource(group="/apis/networking.k8s.io/v1", plural="networkpolicies")
ACCESS_REVIEWS = Resource(
    group="/apis/authorization.k8s.io/v1", plural="selfsubjectaccessreviews", namespaced=False
)


class PatchType(StrEnum):
    """How a patch is read."""

    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    JSON = "application/json-patch+json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page of a LIST."""

    items: list[Manifest]
    """The objects, as the server wrote them."""
    resource_version: str
    """Of the list as a whole; a WATCH from it misses nothing."""
    token: str = ""
    """Asks for the next page; empty on the last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchEvent:
    """One line of a WATCH."""

    type: str
    """ADDED, MODIFIED, DELETED or BOOKMARK; before all of them OPENED: the server has taken the watch."""
    object: Manifest
    """As it is now; of a bookmark only its `metadata.resourceVersion` means anything, OPENED has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """Which objects are meant."""

    labels: str = ""
    """`name=value,other!=value,name`; empty: all."""
    fields: str = ""
    """Such as `involvedObject.name=NAME`; empty: all."""

    @classmethod
    def of(cls, labels: Mapping[str, str]) -> Selector:
        """Those that bear all these labels."""
        return cls(labels=",".join(f"{name}={value}" for name, value in sorted(labels.items())))
