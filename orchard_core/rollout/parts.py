"""Everything a rollout is put together from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from orchard_core.errors import ConfigError
from orchard_core.gateway.contract import Model
from orchard_core.harness.contract import Harness
from orchard_core.reward.blobs import BlobSink, MemoryBlobs
from orchard_core.rollout.session import ModelGateway
from orchard_core.rollout.settings import RolloutSettings
from orchard_core.sandbox.contract import SandboxProvider
from orchard_core.tasks.contract import TaskSet
from orchard_core.types.harness import Limits


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
