"""The resolved configuration of a run, as stored, compared and resumed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from pydantic import Field, JsonValue

from orchard_core.rollout.retry import RetryPolicy
from orchard_core.rollout.settings import RolloutSettings
from orchard_core.types.base import Record
from orchard_core.types.harness import Limits
from orchard_core.types.training import TrainedOn

_FREE = frozenset({"created_at", "concurrency", "attempts", "retry", "sampler", "problems"})
"""What does not decide what a rollout is."""
_RESUMABLE = _FREE | {
    "versions",
    "harness_version",
    "settings.phases",
    "settings.jitter_s",
    "settings.verify_tries",
}
"""What may differ between two sessions of one run."""


class RunConfig(Record):
    """Everything that decides what a run does, versions included."""

    schema_version: int = 1
    """Version of this record's shape."""
    taskset: str
    """The task set's written form."""
    harness: str
    """The harness's name."""
    harness_version: str
    """Its own version and that of the package it drives."""
    harness_settings: str = ""
    """Hash of what it read from files of the user's; empty when it reads none."""
    model: str
    """The model's written form."""
    trained: TrainedOn | None = None
    """What the model says it was trained on; None: it does not say."""
    sandbox: str
    """The sandbox provider's name."""
    sampler: JsonValue = None
    """The group sampler, its class and settings."""
    attempts: int = 1
    """Attempts at each task."""
    tasks: int = 0
    """Number of tasks."""
    tasks_digest: str = ""
    """Hash over every task's id and content hash, in order."""
    problems: tuple[str, ...] = ()
    """Tasks and keys that the task set left out or ignored, a line each."""
    prompts_digest: str = ""
    """Hash over every task's instruction, in order."""
    seed: int = 0
    """Seed all other seeds are derived from."""
    limits: Limits = Limits()
    """Bounds of each rollout."""
    settings: RolloutSettings = RolloutSettings()
    """Deadlines of the phases and what is allowed."""
    retry: RetryPolicy = RetryPolicy()
    """What is started again, and how often."""
    concurrency: int = 1
    """Rollouts at once."""
    options: Mapping[str, JsonValue] = Field(default_factory=dict)
    """Further options of the parts, as the user gave them; never secrets."""
    versions: Mapping[str, str] = Field(default_factory=dict)
    """Orchard, Python and every plugin distribution."""
    created_at: float = 0.0
    """Seconds since the epoch."""

    @property
    def digest(self) -> str:
        """Hash of everything that decides what a rollout is."""
        text = self.model_dump_json(exclude=set(_FREE))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def harness_text(self) -> str:
        """The harness as the user wrote it, such as `command:./a.sh`; its name where that was not kept."""
        return self._written("harness") or self.harness

    @property
    def model_text(self) -> str:
        """The model as the user wrote it, such as `openai:NAME`."""
        return self._written("model") or self.model

    def _written(self, part: str) -> str:
        recipe = self.options.get("recipe")
        said = recipe.get(part) if isinstance(recipe, dict) else None
        return said if isinstance(said, str) else ""

    def conflicts(self, other: RunConfig) -> list[Difference]:
        """Differences that forbid resuming one with the other."""
        return [
            item
            for item in differences(self, other)
            if not any(item.field == name or item.field.startswith(f"{name}.") for name in _RESUMABLE)
        ]


class Difference(Record):
    """One field in which two configurations differ."""

    field: str
    """Dotted path."""
    left: JsonValue
    """Its value in the first; None when absent."""
    right: JsonValue
    """Its value in the second; None when absent."""


def differences(left: RunConfig, right: RunConfig) -> list[Difference]:
    """Every field in which two configurations differ, by name."""
    a, b = flat(left.model_dump(mode="json")), flat(right.model_dump(mode="json"))
    return [
        Difference(field=name, left=a.get(name), right=b.get(name))
        for name in sorted(a.keys() | b.keys())
        if a.get(name) != b.get(name)
    ]


def flat(value: Mapping[str, JsonValue], prefix: str = "") -> dict[str, JsonValue]:
    """Nested mappings as one of dotted paths."""
    found: dict[str, JsonValue] = {}
    for name, item in value.items():
        if isinstance(item, dict) and item:
            found |= flat(item, f"{prefix}{name}.")
        else:
            found[prefix + name] = item
    return found
