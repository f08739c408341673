"""Why a pod will not run, or ran and is dead: the cluster's own reason as a typed error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchard_core import SandboxError
from orchard_env.kubernetes.pods import PodView


@dataclass(frozen=True, slots=True, kw_only=True)
class PodEvent:
    """An Event of the cluster that speaks of a pod."""

    pod: str
    """The pod's name."""
    uid: str
    """The pod's uid."""
    reason: str
    """FailedScheduling, FailedMount, TriggeredScaleUp..."""
    message: str
    """The cluster's sentence."""
    warning: bool
    """Its type is Warning."""
    last: float
    """When it was last seen, seconds since the epoch."""
    source: str = ""
    """The component that tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailurePolicy:
    """How patient to be with what may mend itself."""

    schedule_grace_s: float = 300.0
    """How long no node may be found before that is a failure, for clusters that add nodes."""
    no_scale_up_grace_s: float = 15.0
    """The same once the autoscaler said that it will not add a node (NotTriggerScaleUp)."""
    mount_grace_s: float = 60.0
    """How long a volume may fail to mount."""
    pull_grace_s: float = 0.0
    """How long an image pull may fail before it counts; names and rights that are wrong never get any."""


def failure_of(
    pod: PodView, events: Sequence[PodEvent] = (), *, now: float, policy: FailurePolicy | None = None
) -> SandboxError | None:
    """What is wrong with a pod; None while nothing is, or not yet for certain.

    SandboxCreateFailed (ImagePullFailed, QuotaExceeded, Unschedulable, SpecRefused) for one that never ran;
    SandboxGone (out of memory, evicted, preempted, node lost, expired), with `by`, for one that did.
    `now` in seconds since the epoch.
    """
    raise NotImplementedError


def gone(name: str, last: PodView | None, events: Sequence[PodEvent] = ()) -> SandboxError:
    """Why a pod that is no longer there is not: from what was last known of it."""
    raise NotImplementedError
