"""Options of the workforce `kubernetes`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from orchard_core import ConfigError, Record

_VOLUME = "set the option claim or the option host_path: the volume in which the run directory lies"


class WorkforceConfig(Record):
    """How the pods of workers are made. All of it is kept by nobody: give it again when a run is resumed."""

    image: str
    """Image with Orchard in it, of this version, and with the plugins that the run uses."""
    command: tuple[str, ...] = ("orchard",)
    """What starts Orchard's command line in it."""
    kubeconfig: str | None = None
    """Path of a kubeconfig; None: KUBECONFIG's, or the pod's own service account inside a cluster."""
    context: str | None = None
    """A context of it; None: the current one."""
    namespace: str | None = None
    """Where the Jobs are; None: the context's."""

    claim: str | None = None
    """PersistentVolumeClaim whose volume holds the run directory, with access mode ReadWriteMany where
    workers run on several nodes."""
    host_path: str | None = None
    """Instead of a claim: a directory that every node has, such as a mount of NFS."""
    here: str | None = None
    """Where this machine has that volume; None: `host_path`, or `mount`."""
    mount: str | None = None
    """Where workers have it; None: where this machine has it, so that all paths are the same."""

    env: Mapping[str, str] = Field(default_factory=dict)
    """Environment of workers. Never a key: see `env_from`."""
    env_from: tuple[str, ...] = ()
    """Secrets of the namespace whose entries become environment variables, such as OPENAI_API_KEY."""
    workdir: str | None = None
    """Where workers start; None: the image's."""
    resources: Mapping[str, Mapping[str, str | int | float]] = Field(default_factory=dict)
    """`requests` and `limits`, as in a container's spec."""
    pull_policy: Literal["IfNotPresent", "Always", "Never"] = "IfNotPresent"
    """Of the image."""
    pull_with: tuple[str, ...] = ()
    """Secrets of the namespace with a registry's credentials."""
    service_account: str | None = None
    """Service account of workers, for the sandbox provider `kubernetes`; None: none is mounted."""
    run_as: tuple[int, int] | None = None
    """User and group of workers, who write the run directory; None: the image's."""
    node_selector: Mapping[str, str] = Field(default_factory=dict)
    """Labels of nodes."""
    tolerations: tuple[Mapping[str, Any], ...] = ()
    """As in a pod's spec."""
    priority_class: str | None = None
    """PriorityClass."""
    labels: Mapping[str, str] = Field(default_factory=dict)
    """Of every pod, beside `orchard.dev/role: driver`."""
    annotations: Mapping[str, str] = Field(default_factory=dict)
    """Of every pod."""
    pod_patch: Mapping[str, Any] | tuple[Mapping[str, Any], ...] = Field(default_factory=dict)
    """For what is not foreseen here: a strategic merge patch of the pod, or a list of JSON patch operations,
    put on last. The container is named `worker`."""

    grace_s: int = Field(default=30, ge=1)
    """How long a worker that is asked to stop may take to tear its sandboxes down."""
    schedule_grace_s: float = Field(default=300.0, ge=0)
    """How long no node may be found, for clusters that add nodes."""

    @model_validator(mode="after")
    def _one_volume(self) -> WorkforceConfig:
        if (self.claim is None) == (self.host_path is None):
            raise ConfigError("the workers' volume is not named, or is named twice", hint=_VOLUME)
        if self.claim is not None and self.here is None and self.mount is None:
            raise ConfigError(
                f"it is not said where this machine has the volume of the claim {self.claim}",
                hint="set the option here to the directory at which it is mounted",
            )
        return self

    @property
    def place_here(self) -> Path:
        """The volume's directory on this machine."""
        return Path(self.here or self.host_path or self.mount or "/")

    @property
    def place_there(self) -> Path:
        """The volume's directory in a worker."""
        return Path(self.mount) if self.mount else self.place_here

    def seen_by_workers(self, path: Path) -> Path:
        """The same directory as a worker sees it. Raises ConfigError."""
        if not path.is_relative_to(self.place_here):
            raise ConfigError(
                f"{path} does not lie in the workers' volume, which this machine has at {self.place_here}",
                hint=f"choose an --out below {self.place_here}, or set the options here and mount",
            )
        return self.place_there / path.relative_to(self.place_here)
