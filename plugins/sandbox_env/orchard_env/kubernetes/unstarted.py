"""Why a pod does not come up: image, scheduling, configuration, volumes, the node's own refusal."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from orchard_core import ImagePullFailed, SandboxCreateFailed, SpecRefused, Unschedulable
from orchard_env.kubernetes.events import PodEvent
from orchard_env.kubernetes.pods import ContainerView, PodView

_NAME_WRONG = frozenset({"InvalidImageName", "ErrImageNeverPull"})
_PULL = frozenset({"ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "ImageInspectError"})
_PULL_SURE = re.compile(
    r"not found|manifest unknown|does not exist|unauthori[sz]ed|denied|forbidden|authentication required"
    r"|no basic auth|insufficient_scope|invalid reference|no match for platform|40[134] "
    r"|no such host|connection refused|no route to host|network is unreachable"
    r"|x509: |HTTP response to HTTPS client",
    re.IGNORECASE,
)
"""The name, the rights or the way to the registry is wrong: another try a few seconds later ends the same."""
_CONFIG = frozenset(
    {
        "CreateContainerConfigError",
        "RunContainerError",
        "StartError",
        "ContainerCannotRun",
        "CrashLoopBackOff",
    }
)
_CREATE = frozenset({"CreateContainerError", "PreStartHookError", "PostStartHookError"})
_PASSING = re.compile(r"deadline exceeded|name .* is reserved|connection refused|unavailable", re.IGNORECASE)
_LACKING = re.compile(r'(secret|configmap|persistentvolumeclaim) "?[^ ]+"? not found')
_MOUNT = frozenset({"FailedMount", "FailedAttachVolume", "FailedMapVolume"})
_GROWING = frozenset({"TriggeredScaleUp", "Nominated"})
_NOT_GROWING = frozenset({"NotTriggerScaleUp"})


@dataclass(frozen=True, slots=True, kw_only=True)
class FailurePolicy:
    """How patient to be with what may mend itself, seconds."""

    schedule_grace_s: float = 30.0
    """How long no node may be found while no autoscaler says anything."""
    scale_up_grace_s: float = 600.0
    """The same from the moment an autoscaler said that it adds a node."""
    no_scale_up_grace_s: float = 5.0
    """The same once an autoscaler said that it will not."""
    pull_grace_s: float = 30.0
    """How long an image pull may fail for reasons that pass: a limit of its rate, a silent registry. A wrong
    name, wrong credentials, and a registry that nobody reaches get none."""
    start_grace_s: float = 60.0
    """How long the node may fail to mount a volume or to set the pod up, for reasons that pass."""
    node_grace_s: float = 60.0
    """How long a node that stopped to report may be silent before what ran there counts as lost."""


def unstarted(
    pod: PodView, events: Sequence[PodEvent], *, now: float, policy: FailurePolicy
) -> SandboxCreateFailed | None:
    """Of a pod that is pending, or whose node would not have it; else None."""
    if pod.phase == "Failed":
        return _refused_by_node(pod)
    if pod.phase != "Pending":
        return None
    return (
        _unschedulable(pod, events, now, policy)
        or _images(pod, events, now, policy)
        or _configuration(pod, now, policy)
        or _set_up(pod, events, now, policy)
    )


def _refused_by_node(pod: PodView) -> SandboxCreateFailed | None:
    for container in pod.containers:
        if container.reason in _CONFIG or (container.init and container.exit_code):
            return _broken(pod, container)
    if pod.reason.startswith("OutOf") or pod.reason in {"UnexpectedAdmissionError", "NodeAffinity"}:
        return Unschedulable(
            f"pod {pod.name}: the node {pod.node} would not have it ({pod.reason}): {pod.message}",
            hint="create it again; if it goes on, ask for less or for other nodes",
        )
    return None


def _unschedulable(
    pod: PodView, events: Sequence[PodEvent], now: float, policy: FailurePolicy
) -> Unschedulable | None:
    found = next((one for one in pod.conditions if one.type == "PodScheduled"), None)
    if found is None or pod.node or found.reason == "SchedulingGated":
        return None
    since, grace, words = found.since or pod.created, policy.schedule_grace_s, found.message
    told = [event for event in events if event.reason in _GROWING | _NOT_GROWING]
    if told:
        growing = told[-1].reason in _GROWING
        since = told[-1].last if growing else since
        grace = policy.scale_up_grace_s if growing else policy.no_scale_up_grace_s
        words = f"{words}; {told[-1].source}: {told[-1].message}"
    if now - since < grace:
        return None
    return Unschedulable(
        f"pod {pod.name}: no node within {grace:g} s: {words}",
        hint="ask for less, free the cluster, add nodes, or raise the grace for autoscaling",
    )


def _images(
    pod: PodView, events: Sequence[PodEvent], now: float, policy: FailurePolicy
) -> ImagePullFailed | None:
    for container in pod.containers:
        if container.state != "waiting" or container.reason not in _NAME_WRONG | _PULL:
            continue
        told = [event for event in events if event.message.startswith("Failed to pull image")]
        words = told[-1].message if told else container.message
        since = told[0].first if told else pod.created
        sure = container.reason in _NAME_WRONG or _PULL_SURE.search(f"{container.message} {words}")
        if sure or now - since >= policy.pull_grace_s:
            return ImagePullFailed(
                f"pod {pod.name}, container {container.name}: {container.reason}: {words}",
                hint="check the image's name, the registry, and the image pull secrets",
            )
    return None


def _configuration(pod: PodView, now: float, policy: FailurePolicy) -> SandboxCreateFailed | None:
    for container in pod.containers:
        if container.state == "waiting" and container.reason in _CONFIG:
            return _broken(pod, container)
        if container.state == "waiting" and container.reason in _CREATE:
            passing = _PASSING.search(container.message)
            if not passing or now - pod.created >= policy.start_grace_s:
                return _broken(pod, container)
        if container.init and container.state == "terminated" and container.exit_code:
            return _broken(pod, container)
    return None


def _set_up(
    pod: PodView, events: Sequence[PodEvent], now: float, policy: FailurePolicy
) -> SandboxCreateFailed | None:
    """What a pod's own status does not tell: volumes, and what the pod stands in."""
    told = [event for event in events if event.reason in _MOUNT or event.reason == "FailedCreatePodSandBox"]
    if not told or pod.started:
        return None
    worst = told[-1]
    if re.search(r"no runtime for|RuntimeHandler", worst.message):
        return SpecRefused(
            f"pod {pod.name}: the node has no such runtime class: {worst.message}",
            hint="install it on the nodes, or select those that have it",
        )
    lacking = next((one for one in reversed(told) if _LACKING.search(one.message)), None)
    if lacking is not None:
        return SpecRefused(
            f"pod {pod.name}: {lacking.reason}: {lacking.message}", hint="make it, or mend its name"
        )
    if now - told[0].first < policy.start_grace_s:
        return None
    return SandboxCreateFailed(
        f"pod {pod.name}: {worst.reason}: {worst.message}", hint="see kubectl describe pod"
    )


def _broken(pod: PodView, container: ContainerView) -> SandboxCreateFailed:
    where = f"pod {pod.name}, {'init container' if container.init else 'container'} {container.name}"
    if container.init and container.state == "terminated":
        return SandboxCreateFailed(
            f"{where} ended with {container.exit_code} ({container.reason}) {container.message}".rstrip(),
            hint=f"see kubectl logs {pod.name} -c {container.name}",
        )
    before = f", before that {container.last_reason}" if container.last_reason else ""
    return SpecRefused(
        f"{where}: {container.reason}{before}: {container.message}",
        hint="mend the image, the command, or the secret or config map that the message names",
    )
