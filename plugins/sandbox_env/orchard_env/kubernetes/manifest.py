"""From a spec to a pod."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from orchard_core import ConfigError, SandboxSpec, outlet_environment
from orchard_env.kubernetes import labels
from orchard_env.kubernetes.config import KubernetesConfig
from orchard_env.kubernetes.demands import Identity, identity
from orchard_env.kubernetes.patching import patched
from orchard_env.kubernetes.resources import Manifest
from orchard_env.kubernetes.tokens import SEED_KEY

CONTAINER: Final = "sandbox"
"""The container in which everything runs."""
INJECTOR: Final = "inject"
"""The init container that brings the agent."""

_SHARED: Final = "/.orchard"
_AGENT_IMAGE: Final = "/.orchard-agent"
_SEED_AT: Final = "/seed"
_TOKEN: Final = f"{_SHARED}/token/token"
_WORKSPACE: Final = "/workspace"
_SHARED_SIZE: Final = "64Mi"
_NOTES_SIZE: Final = "256Mi"
"""With the list of every file of a large image."""
_DEADLINE_GRACE_S: Final = 30.0
_SECONDS_MAX: Final = 2.0**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PodOwner:
    """Whose the pod is."""

    driver: str
    """Name of the lease that keeps it alive."""
    reference: Manifest | None = None
    """The driver's own pod, with which the cluster removes it; None: the driver runs in none."""


def pod_manifest(
    sandbox_id: str, spec: SandboxSpec, config: KubernetesConfig, owner: PodOwner, *, memory_mb: int | None
) -> Manifest:
    """The pod of one sandbox, which `check_demands` has passed. `memory_mb` goes before the spec's.
    Raises ConfigError for a pod patch that cannot be put on."""
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _metadata(sandbox_id, spec, config, owner),
        "spec": _pod(sandbox_id, spec, config, memory_mb),
    }
    if not config.pod_patch:
        return manifest
    changed = patched(manifest, config.pod_patch)
    if labels.owned_by(changed) != labels.owned_by(manifest):
        raise ConfigError(
            f"the pod patch {config.pod_patch} changes whose the pod is",
            hint=f"leave the name, the labels and the annotations of {labels.PREFIX} as they are",
        )
    return changed


def _metadata(sandbox_id: str, spec: SandboxSpec, config: KubernetesConfig, owner: PodOwner) -> Manifest:
    told: Manifest = {
        "name": sandbox_id,
        "labels": {
            **config.labels,
            **labels.spec_labels(spec),
            labels.MANAGED_BY: labels.MANAGER,
            labels.SANDBOX: sandbox_id,
            labels.DRIVER: owner.driver,
        },
        "annotations": {
            **config.annotations,
            labels.SPEC: labels.spec_annotation(spec),
            labels.CREATED: f"{time.time():.3f}",
            labels.PORT: str(config.agent_port),
        },
    }
    if owner.reference is not None:
        told["ownerReferences"] = [owner.reference]
    return told


def _pod(sandbox_id: str, spec: SandboxSpec, config: KubernetesConfig, memory_mb: int | None) -> Manifest:
    who = identity(spec.user)
    pod: Manifest = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 1,
        # The driver ends a sandbox in time; this is for one whose driver is dead.
        "activeDeadlineSeconds": deadline_s(spec, config),
        # Names are resolved by the driver's proxy: a resolver inside would carry data out.
        "dnsPolicy": "None",
        "dnsConfig": {"nameservers": ["127.0.0.1"], "options": [{"name": "attempts", "value": "1"}]},
        "securityContext": _pod_security(who, config),
        "initContainers": [_injector(sandbox_id, config)],
        "containers": [_container(sandbox_id, spec, config, who, memory_mb)],
        "volumes": _volumes(spec, config),
    }
    pod |= _placement(config)
    return pod


def deadline_s(spec: SandboxSpec, config: KubernetesConfig) -> int:
    """Seconds after which the cluster ends a sandbox whatever its driver does."""
    return math.ceil(min(_SECONDS_MAX, spec.ttl_s + config.create_timeout_s + _DEADLINE_GRACE_S))


def _placement(config: KubernetesConfig) -> Manifest:
    counted = {"labelSelector": {"matchLabels": {labels.MANAGED_BY: labels.MANAGER}}}
    chosen: Manifest = {
        "runtimeClassName": config.runtime_class,
        "priorityClassName": config.priority_class,
        "nodeSelector": dict(config.node_selector),
        "tolerations": [dict(one) for one in config.tolerations],
        "topologySpreadConstraints": [{**counted, **one} for one in config.topology_spread],
        "imagePullSecrets": [{"name": name} for name in config.pull_secrets],
    }
    return {name: value for name, value in chosen.items() if value}


def _pod_security(who: Identity, config: KubernetesConfig) -> Manifest:
    security: Manifest = {"seccompProfile": {"type": "RuntimeDefault"}}
    if config.run_as_non_root:
        security["runAsNonRoot"] = True
    return security


def _container_security(who: Identity, config: KubernetesConfig) -> Manifest:
    security: Manifest = {
        "allowPrivilegeEscalation": False,
        "privileged": False,
        "capabilities": {"drop": ["ALL"]},
    }
    if config.capabilities:
        security["capabilities"]["add"] = list(config.capabilities)
    if who.uid is not None:
        security |= {"runAsUser": who.uid, "runAsGroup": who.gid}
    return security


def _injector(sandbox_id: str, config: KubernetesConfig) -> Manifest:
    mounts = [
        {"name": "orchard", "mountPath": _SHARED},
        {"name": "orchard-seed", "mountPath": _SEED_AT, "readOnly": True},
    ]
    return {
        "name": INJECTOR,
        "image": config.injector,
        "imagePullPolicy": config.pull_policy,
        "command": ["/orchard-agent", "inject"],
        "args": [
            *(("--to", f"{_SHARED}/bin") if config.injection == "copy" else ()),
            *("--sandbox-id", sandbox_id, "--pod-uid", "$(POD_UID)"),
            *("--seed-file", f"{_SEED_AT}/{SEED_KEY}", "--token-file", _TOKEN),
        ],
        "env": [{"name": "POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}],
        "volumeMounts": mounts,
        "resources": {
            "requests": {"cpu": "10m", "memory": "16Mi"},
            "limits": {"cpu": "1", "memory": "64Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "privileged": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
            # Any number serves: what it writes is for everybody inside to read.
            "runAsUser": 65532,
            "runAsGroup": 65532,
        },
    }


def _container(
    sandbox_id: str, spec: SandboxSpec, config: KubernetesConfig, who: Identity, memory_mb: int | None
) -> Manifest:
    agent = f"{_SHARED}/bin" if config.injection == "copy" else _AGENT_IMAGE
    command = [
        f"{agent}/orchard-agent",
        *("--listen", f"tcp:0.0.0.0:{config.agent_port}", "--sandbox-id", sandbox_id),
        *("--token-file", _TOKEN, "--workdir", _literal(spec.workdir), "--ignore-term"),
        *_noting_changes(spec, config),
        *(("--drop-to", who.drop_to) if who.drop_to else ()),
    ]
    env = {**config.env, **outlet_environment(spec.network), **spec.env}
    return {
        "name": CONTAINER,
        "image": config.host_image if spec.image.kind == "host" else spec.image.value,
        "imagePullPolicy": config.pull_policy,
        "command": command,
        "workingDir": _WORKSPACE if spec.workdir == _WORKSPACE else "/",
        "env": [{"name": name, "value": _literal(value)} for name, value in env.items()],
        "ports": [{"name": "agent", "containerPort": config.agent_port}],
        "resources": _resources(spec, config, memory_mb),
        "volumeMounts": _mounts(spec, config),
        "securityContext": _container_security(who, config),
    }


def _noting_changes(spec: SandboxSpec, config: KubernetesConfig) -> tuple[str, ...]:
    """For snapshots the agent notes what there was before anything ran. Its list lies where no change of a
    sandbox's own lies."""
    if config.snapshots is None:
        return ()
    own = ("--own-mount", _WORKSPACE) if _own_workspace(spec, config) else ()
    return ("--baseline", f"{_SHARED}/baseline", *own)


def _literal(text: str) -> str:
    """Kubernetes replaces $(NAME) in arguments and values; $$ stands for $."""
    return text.replace("$", "$$")


def _resources(spec: SandboxSpec, config: KubernetesConfig, memory_mb: int | None) -> Manifest:
    cpu = spec.cpu or config.default_cpu
    memory = memory_mb or spec.memory_mb or config.default_memory_mb
    disk = spec.disk_mb or config.default_disk_mb
    limits: dict[str, str] = {}
    requests: dict[str, str] = {}
    if cpu is not None:
        limits["cpu"] = f"{max(1, round(cpu * 1000))}m"
        requests["cpu"] = f"{round(cpu * config.cpu_request_share * 1000)}m"
    if memory is not None:
        limits["memory"] = f"{memory}Mi"
        requests["memory"] = f"{round(memory * config.memory_request_share)}Mi"
    if disk is not None:
        limits["ephemeral-storage"] = requests["ephemeral-storage"] = f"{disk}Mi"
    if config.gpus:
        limits[config.gpu_resource] = requests[config.gpu_resource] = str(config.gpus)
    return {"limits": limits, "requests": requests}


def _own_workspace(spec: SandboxSpec, config: KubernetesConfig) -> bool:
    """Whether /workspace is a volume: a directory that the runtime makes in the image is root's."""
    if spec.workdir != _WORKSPACE or config.workspace == "image":
        return False
    return config.workspace == "volume" or spec.user not in {None, "0", "0:0", "root"}


def _mounts(spec: SandboxSpec, config: KubernetesConfig) -> list[Mapping[str, Any]]:
    mounts: list[Mapping[str, Any]] = [{"name": "orchard", "mountPath": _SHARED}]
    if config.injection == "image-volume":
        mounts.append({"name": "orchard-agent", "mountPath": _AGENT_IMAGE, "readOnly": True})
    if _own_workspace(spec, config):
        mounts.append({"name": "workspace", "mountPath": _WORKSPACE})
    return [*mounts, *(dict(one) for one in config.volume_mounts)]


def _volumes(spec: SandboxSpec, config: KubernetesConfig) -> list[Mapping[str, Any]]:
    volumes: list[Mapping[str, Any]] = [
        {
            "name": "orchard",
            "emptyDir": {"sizeLimit": _SHARED_SIZE if config.snapshots is None else _NOTES_SIZE},
        },
        {"name": "orchard-seed", "secret": {"secretName": config.seed_secret, "defaultMode": 0o444}},
    ]
    if config.injection == "image-volume":
        image = {"reference": config.injector, "pullPolicy": config.pull_policy}
        volumes.append({"name": "orchard-agent", "image": image})
    if _own_workspace(spec, config):
        volumes.append({"name": "workspace", "emptyDir": {}})
    return [*volumes, *(dict(one) for one in config.volumes)]
