"""What is kept of a pod: a small slotted record read off the server's JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from orchard_env.kubernetes.resources import Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerView:
    """A container as its node last told; only those with something to tell are kept."""

    name: str
    """As in the pod's spec."""
    init: bool
    """It runs before the others."""
    state: str
    """`waiting`, `running` or `terminated`."""
    reason: str = ""
    """The cluster's word: ImagePullBackOff, OOMKilled, Error..."""
    message: str = ""
    """The cluster's sentence."""
    exit_code: int | None = None
    """Of a terminated one."""
    restarts: int = 0
    """How often it was started again."""
    last_reason: str = ""
    """Why it ended the time before, if it was started again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodCondition:
    """A condition that says something went another way than well, or (Ready) that all is well."""

    type: str
    """PodScheduled, Ready, DisruptionTarget..."""
    status: bool
    """True or False; Unknown counts as False."""
    reason: str = ""
    """The cluster's word."""
    message: str = ""
    """The cluster's sentence."""
    since: float = 0.0
    """Last transition, seconds since the epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodView:
    """One pod."""

    name: str
    """Its name."""
    uid: str
    """Its own for ever; a name may come again."""
    resource_version: str
    """For conditional changes."""
    phase: str
    """Pending, Running, Succeeded, Failed or Unknown."""
    ready: bool = False
    """Its Ready condition is true."""
    ip: str = ""
    """Its address, once it has one."""
    node: str = ""
    """Where it runs, once it is bound."""
    created: float = 0.0
    """Seconds since the epoch by the server's clock."""
    deleting: float | None = None
    """Deletion was asked for: when its grace ends, seconds since the epoch."""
    reason: str = ""
    """Of the pod as a whole: Evicted, DeadlineExceeded, NodeLost, Shutdown..."""
    message: str = ""
    """The cluster's sentence to it."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """All of them."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Ours only (`orchard.dev/`)."""
    containers: tuple[ContainerView, ...] = ()
    """Those that wait with a reason, have ended, or were started again."""
    conditions: tuple[PodCondition, ...] = ()
    """PodScheduled when false; DisruptionTarget when true; Ready and Initialized are not kept."""

    @classmethod
    def read(cls, manifest: Manifest) -> PodView:
        """Of a pod as the server wrote it."""
        raise NotImplementedError
