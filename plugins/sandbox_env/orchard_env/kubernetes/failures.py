"""Why a pod will not run, or ran and is dead: the cluster's own reason as a typed error."""

from __future__ import annotations

from collections.abc import Sequence

from orchard_core import SandboxError, SandboxGone
from orchard_env.kubernetes.ended import ended, vanished
from orchard_env.kubernetes.events import PodEvent
from orchard_env.kubernetes.pods import PodView
from orchard_env.kubernetes.unstarted import FailurePolicy, unstarted

__all__ = ["FailurePolicy", "PodEvent", "failure_of", "gone"]


def failure_of(
    pod: PodView, events: Sequence[PodEvent] = (), *, now: float, policy: FailurePolicy | None = None
) -> SandboxError | None:
    """What is wrong with a pod; None while nothing is, or not yet for certain.

    SandboxCreateFailed (ImagePullFailed, Unschedulable, SpecRefused) for one that never ran; SandboxGone
    (out of memory, evicted, preempted, node lost, expired), with `by`, for one that did or that is being
    deleted. `now` in seconds since the epoch; `events` oldest first.
    """
    policy = policy or FailurePolicy()
    return ended(pod, events, now=now, node_grace_s=policy.node_grace_s) or unstarted(
        pod, events, now=now, policy=policy
    )


def gone(name: str, last: PodView | None, events: Sequence[PodEvent] = ()) -> SandboxGone:
    """Why a pod that is no longer there is not: from what was last known of it."""
    return vanished(name, last, events)
