"""What makes pods alike: the digest of the pod that a spec and the provider's options make."""

from __future__ import annotations

import hashlib

import orjson

from orchard_core import ImageRef, SandboxSpec
from orchard_env.kubernetes import labels
from orchard_env.kubernetes.config import KubernetesConfig
from orchard_env.kubernetes.manifest import PodOwner, pod_manifest
from orchard_env.kubernetes.resources import Manifest
from orchard_env.kubernetes.warm.config import PoolConfig

_ANYBODY = PodOwner(driver="pool")
_OF_ONE = (labels.SPEC, labels.CREATED)


def pool_spec(pool: PoolConfig) -> SandboxSpec:
    """The spec of a pool's pods."""
    return SandboxSpec(
        image=ImageRef(kind="oci", value=pool.image),
        cpu=pool.cpu,
        memory_mb=pool.memory_mb,
        disk_mb=pool.disk_mb,
        user=pool.user,
        workdir=pool.workdir,
    )


def unclaimed(spec: SandboxSpec) -> SandboxSpec:
    """What of a spec is in the pod itself; all else is given to a pod that runs."""
    return SandboxSpec(
        image=spec.image,
        cpu=spec.cpu,
        memory_mb=spec.memory_mb,
        disk_mb=spec.disk_mb,
        user=spec.user,
        workdir=spec.workdir,
        mounts=spec.mounts,
        pids=spec.pids,
    )


def template(name: str, spec: SandboxSpec, config: KubernetesConfig) -> Manifest:
    """A pod that is nobody's yet. Raises ConfigError for a pod patch that cannot be put on."""
    manifest = pod_manifest(name, unclaimed(spec), config, _ANYBODY, memory_mb=None)
    about = manifest["metadata"]
    for key in _OF_ONE:
        about["annotations"].pop(key, None)
    for key in (labels.SANDBOX, labels.DRIVER):
        about["labels"].pop(key, None)
    # The life span begins with the claim.
    manifest["spec"].pop("activeDeadlineSeconds", None)
    return manifest


def shape_of(spec: SandboxSpec, config: KubernetesConfig) -> str:
    """A label's value that two specs share when one pod serves both: everything of the pod is in it, the
    agent's version too. Raises ConfigError."""
    whole = orjson.dumps(template("pool", spec, config), option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(whole).hexdigest()[:20]
