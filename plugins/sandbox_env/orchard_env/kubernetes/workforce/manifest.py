"""From an order for workers to the Jobs that a cluster runs them as."""

from __future__ import annotations

from typing import Any, Final

from orchard_core import WorkOrder
from orchard_env.kubernetes.labels import ROLE
from orchard_env.kubernetes.patching import patched
from orchard_env.kubernetes.resources import PREFIX, Manifest, Selector
from orchard_env.kubernetes.workforce.config import WorkforceConfig

CREW: Final = f"{PREFIX}crew"
"""Label of every object that is made for one run."""
CONTAINER: Final = "worker"
"""The container's name."""
_INDEXED: Final = (1, 24)
"""The first version in which Indexed Jobs are stable."""
_LIMIT_PER_INDEX: Final = (1, 29)
"""The first in which each index has a limit of its own without a feature gate."""
_KEPT_S: Final = 24 * 3600
"""Jobs whose coordinator is gone stay so long after their end, for who wants to read why it came."""
_POD_FIELDS: Final = {
    "ORCHARD_POD_NAME": "metadata.name",
    "ORCHARD_POD_UID": "metadata.uid",
    "ORCHARD_POD_NAMESPACE": "metadata.namespace",
}
"""By these the sandbox provider of a worker makes its sandboxes go with the worker's pod."""


def crew_selector(crew: str) -> Selector:
    """All that is made for one run."""
    return Selector.of({CREW: crew})


def index_of(name: str) -> int:
    """Which worker a pod is, or -1: the name of a pod begins with `orchard-CREW-INDEX-`, whether it is of an
    Indexed Job or of one Job for each."""
    parts = name.split("-")
    return int(parts[2]) if len(parts) > 2 and parts[2].isdecimal() else -1


def jobs_of(
    order: WorkOrder,
    config: WorkforceConfig,
    *,
    crew: str,
    version: tuple[int, int],
    owner: Manifest | None = None,
) -> list[Manifest]:
    """One Indexed Job, or one Job for each worker on a server of before 1.24. Raises ConfigError."""
    if version < _INDEXED:
        return [
            _job(f"orchard-{crew}-{index}", order, config, crew, owner, str(index))
            | {"spec": _spec(order, config, crew, str(index)) | {"backoffLimit": order.restarts}}
            for index in range(order.count)
        ]
    spec = _spec(order, config, crew, "$(JOB_COMPLETION_INDEX)") | {
        "completionMode": "Indexed",
        "completions": order.count,
        "parallelism": order.count,
    }
    if version >= _LIMIT_PER_INDEX:
        # A new worker begins when the one that it follows has let go of its part.
        spec |= {"backoffLimitPerIndex": order.restarts, "podReplacementPolicy": "Failed"}
    else:
        spec |= {"backoffLimit": order.restarts * order.count}
    return [_job(f"orchard-{crew}", order, config, crew, owner, "") | {"spec": spec}]


def _job(
    name: str, order: WorkOrder, config: WorkforceConfig, crew: str, owner: Manifest | None, index: str
) -> Manifest:
    about: Manifest = {
        "name": name,
        "labels": {CREW: crew},
        "annotations": {f"{PREFIX}run": str(order.run)},
    }
    if owner is not None:
        about["ownerReferences"] = [owner]
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": about}


def _spec(order: WorkOrder, config: WorkforceConfig, crew: str, index: str) -> Manifest:
    pod: Manifest = {
        "metadata": {
            "labels": {**config.labels, CREW: crew, ROLE: "driver"},
            "annotations": dict(config.annotations),
        },
        "spec": _pod(order, config, index),
    }
    return {"template": patched(pod, config.pod_patch), "ttlSecondsAfterFinished": _KEPT_S}


def _pod(order: WorkOrder, config: WorkforceConfig, index: str) -> Manifest:
    source: Manifest = (
        {"persistentVolumeClaim": {"claimName": config.claim}}
        if config.claim is not None
        else {"hostPath": {"path": config.host_path, "type": "Directory"}}
    )
    pod: Manifest = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": config.grace_s,
        "automountServiceAccountToken": config.service_account is not None,
        "enableServiceLinks": False,
        # A worker that were process 1 would not end by a signal while Python still starts, nor reap.
        "shareProcessNamespace": True,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}, **_user(config)},
        "nodeSelector": dict(config.node_selector),
        "tolerations": [dict(one) for one in config.tolerations],
        "imagePullSecrets": [{"name": name} for name in config.pull_with],
        "containers": [_container(order, config, index)],
        "volumes": [{"name": "run", **source}],
    }
    if config.service_account is not None:
        pod["serviceAccountName"] = config.service_account
    if config.priority_class is not None:
        pod["priorityClassName"] = config.priority_class
    return pod


def _user(config: WorkforceConfig) -> dict[str, Any]:
    if config.run_as is None:
        return {}
    user, group = config.run_as
    return {"runAsUser": user, "runAsGroup": group}


def _container(order: WorkOrder, config: WorkforceConfig, index: str) -> Manifest:
    run = str(config.seen_by_workers(order.run))
    container: Manifest = {
        "name": CONTAINER,
        "image": config.image,
        "imagePullPolicy": config.pull_policy,
        "command": [_literal(word) for word in (*config.command, "worker", run)],
        "args": ["--index", index, "--count", str(order.count)],
        "env": [
            *({"name": name, "value": _literal(value)} for name, value in config.env.items()),
            *(
                {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
                for name, path in _POD_FIELDS.items()
            ),
        ],
        "envFrom": [{"secretRef": {"name": name}} for name in config.env_from],
        "resources": {kind: dict(amounts) for kind, amounts in config.resources.items()},
        "volumeMounts": [{"name": "run", "mountPath": str(config.place_there)}],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    if config.workdir is not None:
        container["workingDir"] = config.workdir
    return container


def _literal(text: str) -> str:
    """Kubernetes replaces $(NAME) in arguments and values; $$ stands for $."""
    return text.replace("$", "$$")
