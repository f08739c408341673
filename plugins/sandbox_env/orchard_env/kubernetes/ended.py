"""Why a pod that ran does so no longer, and whose doing that is."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence

from orchard_core import (
    NodeLost,
    SandboxEvicted,
    SandboxExpired,
    SandboxGone,
    SandboxOutOfMemory,
    SandboxPreempted,
)
from orchard_env.kubernetes.events import PodEvent
from orchard_env.kubernetes.pods import ContainerView, PodView
from orchard_env.kubernetes.resources import Manifest

_OWN_DISK = re.compile(
    r"exceed(s|ed)( its local ephemeral storage)? (the total )?limit|exceeds the limit", re.I
)
_NODE = frozenset({"NodeLost", "Shutdown", "NodeShutdown", "Terminated", "ContainerStatusUnknown"})
_DISRUPTED: dict[str, type[SandboxGone]] = {
    "PreemptionByScheduler": SandboxPreempted,
    "PreemptionByKubeScheduler": SandboxPreempted,
    "EvictionByEvictionAPI": SandboxEvicted,
    "TerminationByKubelet": SandboxEvicted,
    "DeletionByTaintManager": NodeLost,
    "DeletionByPodGC": NodeLost,
}
_EVENTS: dict[str, type[SandboxGone]] = {
    "Preempted": SandboxPreempted,
    "Preempting": SandboxPreempted,
    "Evicted": SandboxEvicted,
    "TaintManagerEviction": NodeLost,
    "NodeNotReady": NodeLost,
    "NodeShutdown": NodeLost,
    "ExceededGracePeriod": SandboxEvicted,
}
_SPOT = re.compile(r"spot|preempt(ed|ible)|impending-node-termination|interruption", re.I)
_SPOT_LABELS = frozenset(
    {
        ("cloud.google.com/gke-spot", "true"),
        ("cloud.google.com/gke-preemptible", "true"),
        ("eks.amazonaws.com/capacityType", "SPOT"),
        ("karpenter.sh/capacity-type", "spot"),
        ("kubernetes.azure.com/scalesetpriority", "spot"),
    }
)
_TAKEN_BACK = re.compile(r"spot-itn|impending-node-termination|PreemptScheduled|interruption", re.I)
_KILLED = 128 + signal.SIGKILL
_LOST = frozenset({"Unknown", "ContainerStatusUnknown"})
"""What containerd and the kubelet say of a container whose end nobody saw."""
_AGAIN = {
    SandboxPreempted: "create it again; a higher priority class or nodes that are not spot keep it longer",
    SandboxEvicted: "create it again, with requests that cover what it uses",
    NodeLost: "create it again; it will come up on another node",
}


def ended(pod: PodView, events: Sequence[PodEvent], *, now: float, node_grace_s: float) -> SandboxGone | None:
    """Of a pod that ran and ended, or is being put out; else None."""
    return (
        _whole(pod)
        or _disrupted(pod, events)
        or _containers(pod)
        or _stopped(pod)
        or (vanished(pod.name, pod, events) if pod.deleting is not None else None)
        or _on_silent_node(pod, events, now, node_grace_s)
    )


def vanished(name: str, last: PodView | None, events: Sequence[PodEvent]) -> SandboxGone:
    """Of a pod that was deleted, or is being so, and not by its owner."""
    if last is not None:
        known = _whole(last) or _disrupted(last, events) or _containers(last)
        if known is not None:
            return known
    for event in reversed(events):
        kind = _EVENTS.get(event.reason)
        if kind is not None:
            return _infrastructure(kind, name, event.reason, event.message)
    return SandboxGone(
        f"pod {name} was deleted from outside, and the cluster does not say why",
        by="infrastructure",
        hint="its time was up, its node was drained, or somebody deleted it",
    )


def taken_back(error: SandboxGone, node: Manifest) -> SandboxGone:
    """SandboxPreempted in place of `error` when the pod's node is a spot node that is lost or being so."""
    bears = node["metadata"].get("labels") or {}
    words = [taint["key"] for taint in (node.get("spec") or {}).get("taints") or ()]
    for one in (node.get("status") or {}).get("conditions") or ():
        words += [one.get("reason") or ""] if one["status"] == "True" else []
    told = next((word for word in words if _TAKEN_BACK.search(word)), "")
    spot = isinstance(error, NodeLost) and any(bears.get(k) == v for k, v in _SPOT_LABELS)
    if not told and not spot:
        return error
    return SandboxPreempted(
        f"{error.message} (its node is a spot node{', which says ' + told if told else ''})",
        by="infrastructure",
        hint=_AGAIN[SandboxPreempted],
    )


def _whole(pod: PodView) -> SandboxGone | None:
    if pod.reason == "DeadlineExceeded":
        return SandboxExpired(
            f"pod {pod.name}: its deadline has passed: {pod.message}", hint="ask for a longer time to live"
        )
    if pod.reason == "Evicted":
        if _OWN_DISK.search(pod.message):
            return SandboxEvicted(
                f"pod {pod.name}: it wrote more than it may: {pod.message}",
                by="agent",
                hint="ask for more disk, or let the agent write less",
            )
        return _infrastructure(SandboxEvicted, pod.name, pod.reason, pod.message)
    if pod.reason in {"Preempting", "Preempted"}:
        return _infrastructure(SandboxPreempted, pod.name, pod.reason, pod.message)
    if pod.reason in _NODE or (pod.phase == "Unknown" and not pod.reason):
        kind = SandboxPreempted if _SPOT.search(pod.message) else NodeLost
        return _infrastructure(kind, pod.name, pod.reason or "Unknown", pod.message)
    return None


def _disrupted(pod: PodView, events: Sequence[PodEvent]) -> SandboxGone | None:
    for condition in pod.conditions:
        if condition.type == "DisruptionTarget":
            words = " ".join([condition.message, *(event.message for event in events if event.warning)])
            kind = _DISRUPTED.get(condition.reason, SandboxEvicted)
            if kind is NodeLost and _SPOT.search(words):
                kind = SandboxPreempted
            if "node shutdown" in condition.message:
                kind = NodeLost
            return _infrastructure(kind, pod.name, condition.reason, condition.message)
    return None


def _containers(pod: PodView) -> SandboxGone | None:
    for container in pod.containers:
        if "OOMKilled" in {container.reason, container.last_reason}:
            return SandboxOutOfMemory(
                f"pod {pod.name}, container {container.name}: OOMKilled: it used more memory than it may",
                by="agent",
                hint="ask for more memory, or let the agent use less",
            )
        if container.reason == "ContainerStatusUnknown":
            return _infrastructure(NodeLost, pod.name, container.reason, container.message)
    return None


def _stopped(pod: PodView) -> SandboxGone | None:
    """A container that has ended by itself, or by a signal from inside."""
    main = next((one for one in pod.containers if _over(one)), None)
    if main is None or pod.phase == "Pending" or main.reason in {"StartError", "ContainerCannotRun"}:
        return None
    how = f"{main.exit_code} ({main.reason}) {main.message}".rstrip()
    outside = _from_outside(main)
    if outside and pod.deleting is not None:
        return None  # who deletes it has the last word
    return SandboxGone(
        f"pod {pod.name}, container {main.name} ended with {how}{outside and f': {outside}'}",
        by="infrastructure" if outside else "",
        hint="create it again" if outside else f"see kubectl logs {pod.name} -c {main.name}",
    )


def _from_outside(container: ContainerView) -> str:
    """Why a container's end was no doing of what ran inside; empty where it may have been."""
    if container.reason in _LOST:
        return "its node's container runtime lost it"
    if container.exit_code == _KILLED and container.reason == "Error":
        # The kernel keeps a first process from every SIGKILL that is sent inside its own namespace.
        return "it was killed from outside"
    return ""


def _on_silent_node(
    pod: PodView, events: Sequence[PodEvent], now: float, node_grace_s: float
) -> NodeLost | None:
    """A node that does not report may come back: with its pods, as they were."""
    if pod.ready or pod.phase != "Running":
        return None
    for event in reversed(events):
        if event.reason == "NodeNotReady" and now - event.last >= node_grace_s:
            return NodeLost(
                f"pod {pod.name}: its node {pod.node} has not reported for {now - event.last:.0f} s and more",
                by="infrastructure",
                hint=_AGAIN[NodeLost],
            )
    return None


def _over(container: ContainerView) -> bool:
    return not container.init and container.state == "terminated"


def _infrastructure(kind: type[SandboxGone], name: str, reason: str, message: str) -> SandboxGone:
    return kind(f"pod {name}: {reason}: {message}", by="infrastructure", hint=_AGAIN.get(kind, ""))
