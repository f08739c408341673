"""Everything a rollout is put together from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from orchard_core.errors import ConfigError, SandboxUnsupported
from orchard_core.gateway.contract import Model
from orchard_core.harness.contract import Harness
from orchard_core.rollout.session import ModelGateway
from orchard_core.rollout.settings import RolloutSettings
from orchard_core.rollout.store.blobs import BlobSink, MemoryBlobs
from orchard_core.sandbox.contract import SandboxProvider
from orchard_core.tasks.contract import TaskSet
from orchard_core.types.harness import Limits
from orchard_core.types.sandbox import Capabilities, ImageRef, SandboxSpec
from orchard_core.types.task import Task


def no_judge(name: str) -> Model:
    """For runs without judges. Raises ConfigError."""
    raise ConfigError(f"the reward asks for the judge {name!r}, and none was given", hint="pass judge=MODEL")


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutParts:
    """What the rollouts of a run share."""

    taskset: TaskSet
    """Where the task is from."""
    harness: Harness
    """What drives the model."""
    model: Model
    """The model."""
    provider: SandboxProvider
    """Where sandboxes come from."""
    gateway: ModelGateway
    """Where model traffic is recorded."""
    blobs: BlobSink = field(default_factory=MemoryBlobs)
    """Where artifacts go."""
    judge: Callable[[str], Model] = no_judge
    """The model a reward judges with, by the name it asks for."""
    limits: Limits = field(default_factory=Limits)
    """Bounds of each rollout."""
    settings: RolloutSettings = field(default_factory=RolloutSettings)
    """Deadlines and what is allowed."""
    model_name: str = ""
    """The model's written form; empty: its own name."""
    config_digest: str = ""
    """Hash of the run's resolved config."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Distribution to version, of every plugin loaded."""

    @property
    def model_text(self) -> str:
        """The model as the user named it."""
        return self.model_name or self.model.name


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedSpec:
    """A spec that the provider takes."""

    spec: SandboxSpec
    """The spec."""
    fallback: bool
    """The task named another image."""


def fit_spec(task: Task, spec: SandboxSpec, can: Capabilities, settings: RolloutSettings) -> FittedSpec:
    """The spec, its image replaced by the host's files where that is allowed. Raises SandboxUnsupported."""
    if spec.image.kind in can.images:
        return FittedSpec(spec=spec, fallback=False)
    kinds = ", ".join(sorted(can.images)) or "none"
    if settings.allow_host_fallback and "host" in can.images:
        return FittedSpec(spec=spec.model_copy(update={"image": ImageRef(kind="host")}), fallback=True)
    raise SandboxUnsupported(
        f"task {task.id} needs the image {spec.image}; the provider takes: {kinds}",
        hint="choose another --sandbox, or --allow-host-fallback to run on this machine's own files",
    )
