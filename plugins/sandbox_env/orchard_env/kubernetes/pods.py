"""What is kept of a pod: a small slotted record read off the server's JSON."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType

from orchard_env.kubernetes.resources import PREFIX, REQUEST, Manifest

_NOTHING: Mapping[str, str] = MappingProxyType({})
_TELLING = frozenset({("PodScheduled", "False"), ("DisruptionTarget", "True")})
_VALUE_MAX = 64
"""Label values of up to so many characters are shared between pods."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerView:
    """A container that has something to tell, as its node last told it."""

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
    """A condition that tells of trouble."""

    type: str
    """PodScheduled (false) or DisruptionTarget (true)."""
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
    started: bool = False
    """Its containers (not the init containers) all run."""
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
    labels: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    """All of them."""
    annotations: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    """Ours only (`orchard.dev/`), but for the mark of a create."""
    containers: tuple[ContainerView, ...] = ()
    """Those that wait with a reason, failed, or were started again."""
    conditions: tuple[PodCondition, ...] = ()
    """Those that tell of trouble."""

    @classmethod
    def read(cls, manifest: Manifest) -> PodView:
        """Of a pod as the server wrote it."""
        about, spec, status = manifest["metadata"], manifest.get("spec") or {}, manifest.get("status") or {}
        deleting = about.get("deletionTimestamp")
        conditions = status.get("conditions") or ()
        return cls(
            name=about["name"],
            uid=about["uid"],
            resource_version=about["resourceVersion"],
            phase=sys.intern(status.get("phase") or "Pending"),
            ready=any(one["type"] == "Ready" and one["status"] == "True" for one in conditions),
            started=_all_run(status.get("containerStatuses"), len(spec.get("containers") or ())),
            ip=status.get("podIP") or "",
            node=sys.intern(spec.get("nodeName") or ""),
            created=epoch(about.get("creationTimestamp")),
            deleting=epoch(deleting) if deleting else None,
            reason=sys.intern(status.get("reason") or ""),
            message=status.get("message") or "",
            labels=_shared(about.get("labels")),
            annotations=_ours(about.get("annotations")),
            containers=_containers(status),
            conditions=tuple(_condition(one) for one in conditions if _tells(one)),
        )


def epoch(text: str | None) -> float:
    """Seconds since the epoch of an RFC 3339 time; 0.0 for none."""
    return datetime.fromisoformat(text).timestamp() if text else 0.0


def _shared(labels: dict[str, str] | None) -> Mapping[str, str]:
    if not labels:
        return _NOTHING
    intern = sys.intern
    return {
        intern(name): intern(value) if len(value) <= _VALUE_MAX else value for name, value in labels.items()
    }


def _ours(annotations: dict[str, str] | None) -> Mapping[str, str]:
    kept = {
        sys.intern(name): value
        for name, value in (annotations or {}).items()
        if name.startswith(PREFIX) and name != REQUEST
    }
    return kept or _NOTHING


def _all_run(statuses: list[Manifest] | None, wanted: int) -> bool:
    running = sum(1 for one in statuses or () if "running" in (one.get("state") or ()))
    return bool(wanted) and running == wanted


def _containers(status: Manifest) -> tuple[ContainerView, ...]:
    found = [
        _container(one, init=init)
        for init, several in ((True, "initContainerStatuses"), (False, "containerStatuses"))
        for one in status.get(several) or ()
    ]
    return tuple(one for one in found if one is not None)


def _container(told: Manifest, *, init: bool) -> ContainerView | None:
    """None when it has nothing to tell: it runs, waits its turn, or has done its work before the others."""
    state = told.get("state") or {}
    kind = next(iter(state), "waiting")
    now = state.get(kind) or {}
    restarts = told.get("restartCount") or 0
    reason, code = now.get("reason") or "", now.get("exitCode")
    dull = (
        kind == "running"
        or (kind == "waiting" and reason in {"", "ContainerCreating", "PodInitializing"})
        or (kind == "terminated" and init and code == 0)
    )
    if dull and not restarts:
        return None
    return ContainerView(
        name=sys.intern(told["name"]),
        init=init,
        state=sys.intern(kind),
        reason=sys.intern(reason),
        message=now.get("message") or "",
        exit_code=code,
        restarts=restarts,
        last_reason=_last_reason(told),
    )


def _last_reason(told: Manifest) -> str:
    ended = (told.get("lastState") or {}).get("terminated") or {}
    return sys.intern(ended.get("reason") or "")


def _tells(condition: Manifest) -> bool:
    return (condition["type"], condition["status"]) in _TELLING


def _condition(condition: Manifest) -> PodCondition:
    return PodCondition(
        type=sys.intern(condition["type"]),
        reason=sys.intern(condition.get("reason") or ""),
        message=condition.get("message") or "",
        since=epoch(condition.get("lastTransitionTime")),
    )
