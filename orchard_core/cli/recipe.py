"""What a run is made of, as a YAML file or as flags."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, JsonValue, field_validator

from orchard_core.plugins.recipe_file import checked, recipe_fields
from orchard_core.rollout.retry import RetryPolicy
from orchard_core.rollout.settings import RolloutSettings
from orchard_core.types.base import Record
from orchard_core.types.harness import Limits

_SECRET = re.compile(
    r"(^|[_-])(api[_-]?key|secret|password|credential|authorization|auth[_-]token|cookie)s?$", re.IGNORECASE
)


class Recipe(Record):
    """One run. Every field is also a flag of `orchard run`, but for `retry` and `settings`."""

    taskset: str
    """Task set, such as `workbench:16`."""
    taskset_options: Mapping[str, JsonValue] = Field(default_factory=dict)
    """Its options."""
    harness: str = "react"
    """Harness."""
    harness_options: Mapping[str, JsonValue] = Field(default_factory=dict)
    """Its options."""
    model: str
    """Model, such as `openai:NAME` or `oracle`."""
    model_options: Mapping[str, JsonValue] = Field(default_factory=dict)
    """Its options, such as `base_url`; never a key, which comes from the environment."""
    sandbox: str = "local"
    """Sandbox provider."""
    sandbox_options: Mapping[str, JsonValue] = Field(default_factory=dict)
    """Its options."""
    tasks: tuple[str, ...] = ()
    """Globs of task ids; empty: all."""
    limit: int | None = Field(default=None, ge=1)
    """At most so many tasks, the first ones."""
    attempts: int = Field(default=1, ge=1)
    """Attempts at each task."""
    concurrency: int = Field(default=8, ge=1)
    """Rollouts at once."""
    workers: int = Field(default=1, ge=1)
    """Drivers that share the run, each with a part of its tasks and of `concurrency`."""
    on: str = "processes"
    """Where they run, when there are several: a workforce."""
    worker_options: Mapping[str, JsonValue] = Field(default_factory=dict)
    """Its options."""
    seed: int = 0
    """Seed all other seeds are derived from."""
    limits: Limits = Limits()
    """Bounds of each rollout."""
    allow_host_fallback: bool = False
    """A task that names an image the provider does not take may run on the host's files; recorded."""
    out: str | None = None
    """The run directory; none: a new one under `runs/`."""
    retry: RetryPolicy = RetryPolicy()
    """What is started again, and how often."""
    settings: RolloutSettings = RolloutSettings()
    """Deadlines of the phases."""

    @field_validator(
        "taskset_options", "harness_options", "model_options", "sandbox_options", "worker_options"
    )
    @classmethod
    def _no_secrets(cls, options: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
        return without_secrets(options)


def without_secrets(options: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    """The same options. Raises ValueError when one is named like a key or password."""
    for name in _names(options):
        if _SECRET.search(name):
            raise ValueError(
                f"{name} would be stored with the run; put it into the environment, as OPENAI_API_KEY"
            )
    return options


def _names(options: Mapping[str, JsonValue]) -> Iterator[str]:
    for name, value in options.items():
        yield name
        if isinstance(value, dict):
            yield from _names(value)


def load_recipe(path: Path) -> dict[str, Any]:
    """The fields of a YAML recipe of one run, not yet checked. Raises ConfigError with the line at fault."""
    return recipe_fields(path, Recipe)


def make_recipe(fields: Mapping[str, Any], *, where: str) -> Recipe:
    """Check the fields. Raises ConfigError that names each wrong one, with the closest right name."""
    return checked(Recipe, fields, where=where, command="orchard run")


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`over` laid onto `base`, mappings field by field."""
    result = dict(base)
    for name, value in over.items():
        below = result.get(name)
        if isinstance(value, dict) and isinstance(below, dict):
            result[name] = merged(below, value)
        else:
            result[name] = value
    return result


def to_yaml(recipe: Record) -> str:
    """The whole recipe, defaults included, ready to be saved and run."""
    import yaml

    return yaml.safe_dump(recipe.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
