"""Options of the provider `kubernetes`."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any, Literal

from pydantic import Field, field_validator

from orchard_core import ConfigError, Record
from orchard_env.kubernetes.labels import label_key_fault, label_value_fault
from orchard_env.kubernetes.resources import PREFIX
from orchard_env.kubernetes.snapshots.config import SnapshotConfig
from orchard_env.kubernetes.warm.config import PoolConfig

_ROOTS_OWN = (
    "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID", "SYS_CHROOT",
)  # fmt: skip


def _own_injector() -> str:
    return f"orchard/injector:{version('orchard-core')}"


class Escalation(Record):
    """A sandbox that the kernel ended for its memory before anything ran in it is made again, larger."""

    factor: float = Field(default=2.0, gt=1.0, le=16.0)
    """Memory of the next try over that of the last."""
    times: int = Field(default=0, ge=0, le=8)
    """How often; 0: never."""


class KubernetesConfig(Record):
    """What the operator of a cluster may choose; a task chooses by its SandboxSpec."""

    kubeconfig: str | None = None
    """Path of a kubeconfig; None: KUBECONFIG's, or the pod's own service account inside a cluster."""
    context: str | None = None
    """A context of it; None: the current one."""
    namespace: str | None = None
    """Where the pods of sandboxes are; None: the context's. Give them one of their own."""
    driver: str | None = None
    """Who owns the sandboxes, as a DNS label. Processes of one name, such as the replicas of a service, own
    them together; None: each process has a name of its own, and what it leaves behind is reaped."""
    lease_s: float = Field(default=60.0, ge=3.0)
    """A driver that gave no sign of life for so long is dead, and its sandboxes are reaped."""
    reap: bool = True
    """Look for what dead drivers left behind, every third of `lease_s`."""

    injector: str = Field(default_factory=_own_injector)
    """The image with the agent; that of this version by default."""
    injection: Literal["copy", "image-volume"] = "copy"
    """How the agent gets into a pod: copied by an init container, or shown as an image volume, which needs a
    server of 1.33 with the feature ImageVolume."""
    host_image: str | None = None
    """Image that stands for the image `host`, for tasks that bring no image of their own; None: such
    tasks are refused."""
    pull_policy: Literal["IfNotPresent", "Always", "Never"] = "IfNotPresent"
    """For the sandbox's image and the injector's."""
    pull_secrets: tuple[str, ...] = ()
    """Secrets of the namespace with a registry's credentials."""
    agent_port: int = Field(default=7777, ge=1024, le=65535)
    """TCP port of the agent in every pod."""
    seed_secret: str = "orchard-agent-seed"  # noqa: S105 - the name of an object
    """Secret of the namespace from which all agents' tokens are derived; made when it is missing."""

    default_cpu: float | None = None
    """Cores of sandboxes whose spec names none; None: no limit."""
    default_memory_mb: int | None = None
    """MiB of sandboxes whose spec names none; None: no limit."""
    default_disk_mb: int | None = None
    """MiB of ephemeral storage of sandboxes whose spec names none; None: no limit."""
    cpu_request_share: float = Field(default=1.0, ge=0.0, le=1.0)
    """The part of the CPU limit that is requested; less packs more sandboxes onto a node."""
    memory_request_share: float = Field(default=1.0, ge=0.0, le=1.0)
    """The part of the memory limit that is requested."""
    gpus: int = Field(default=0, ge=0)
    """GPUs of every sandbox of this provider."""
    gpu_resource: str = "nvidia.com/gpu"
    """The resource that a device plugin offers them as."""

    runtime_class: str | None = None
    """RuntimeClass, such as one of gVisor or Kata."""
    capabilities: tuple[str, ...] = _ROOTS_OWN
    """Linux capabilities that root keeps inside; all others are dropped. Empty: none, as the Pod Security
    Standard `restricted` wants."""
    run_as_non_root: bool = False
    """Refuse images that run as root, as the Pod Security Standard `restricted` wants."""
    workspace: Literal["auto", "image", "volume"] = "auto"
    """What /workspace is: a directory of the image, made when missing, or a fresh volume that any user can
    write to; auto: a volume only for a spec that names a user."""
    node_selector: Mapping[str, str] = Field(default_factory=dict)
    """Labels of nodes."""
    tolerations: tuple[Mapping[str, Any], ...] = ()
    """As in a pod's spec."""
    topology_spread: tuple[Mapping[str, Any], ...] = ()
    """topologySpreadConstraints as in a pod's spec; one without a labelSelector counts all sandboxes."""
    priority_class: str | None = None
    """PriorityClass."""
    volumes: tuple[Mapping[str, Any], ...] = ()
    """Further volumes, as in a pod's spec."""
    volume_mounts: tuple[Mapping[str, Any], ...] = ()
    """Where they are mounted in the sandbox's container."""
    env: Mapping[str, str] = Field(default_factory=dict)
    """Environment of every sandbox; the spec's goes before."""
    labels: Mapping[str, str] = Field(default_factory=dict)
    """Of every pod."""
    annotations: Mapping[str, str] = Field(default_factory=dict)
    """Of every pod."""
    pod_patch: Mapping[str, Any] | tuple[Mapping[str, Any], ...] = Field(default_factory=dict)
    """For what is not foreseen here: a strategic merge patch of the pod, or a list of JSON patch operations,
    put on last. The container is named `sandbox`."""

    network_policies: bool = True
    """Make the namespace's NetworkPolicies; False: the operator has."""
    driver_namespaces: tuple[str, ...] = ()
    """Namespaces whose pods labelled as drivers may reach the agents, besides the sandboxes' own."""
    driver_cidrs: tuple[str, ...] = ()
    """Addresses outside the cluster's pods from which drivers may reach the agents."""

    pools: tuple[PoolConfig, ...] = ()
    """Pods that are kept ready. A service's leader fills them; other processes only take from them."""
    fill_pools: bool = False
    """Fill the pools from this process, too: for a driver without a service."""
    snapshots: SnapshotConfig | None = None
    """Where saved files lie; None: no snapshots and no forks."""

    create_timeout_s: float = Field(default=600.0, gt=0)
    """A sandbox whose agent does not answer after so long has failed."""
    schedule_grace_s: float = Field(default=300.0, ge=0)
    """How long no node may be found, for clusters that add nodes."""
    pull_grace_s: float = Field(default=30.0, ge=0)
    """How long an image pull may go wrong for reasons that pass, from its first failure on; what no other try
    mends is told at once."""
    escalation: Escalation = Escalation()
    """What to do about a sandbox that has too little memory to begin."""
    calls_per_s: float = Field(default=100.0, gt=0)
    """Calls a second to the API server, on the average."""

    @field_validator("pools")
    @classmethod
    def _pools(cls, given: tuple[PoolConfig, ...]) -> tuple[PoolConfig, ...]:
        names = [pool.name for pool in given]
        if len({*names}) < len(names):
            raise ConfigError(f"two pools have one name: {', '.join(names)}", hint="name each differently")
        return given

    @field_validator("labels")
    @classmethod
    def _labels(cls, given: Mapping[str, str]) -> Mapping[str, str]:
        for key, value in given.items():
            fault = label_key_fault(key) or label_value_fault(value)
            if fault or key.startswith(PREFIX):
                raise ConfigError(
                    f"the label {key}={value} cannot be put on pods: {fault or f'{PREFIX} is our own'}",
                    hint="labels are [prefix/]name=value of at most 63 letters, digits, -, _ and .",
                )
        return given
