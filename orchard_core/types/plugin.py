"""How a plugin offers a thing: light to import, heavy only when its factory is called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

API_VERSION = 1
"""Version of the plugin API. It rises only when a plugin written for the former one would break."""


class PluginKind(StrEnum):
    """What can be plugged in."""

    SANDBOX = "sandbox"
    """A SandboxProvider."""
    HARNESS = "harness"
    """A Harness."""
    TASKSET = "taskset"
    """A TaskSet."""
    REWARD = "reward"
    """A Reward."""
    TRAINER = "trainer"
    """A Trainer."""
    MODEL = "model"
    """A Model."""
    FORMAT = "format"
    """A DatasetFormat."""
    WORKFORCE = "workforce"
    """A Workforce: where the workers of a shared run come from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Descriptor:
    """One thing a plugin offers."""

    name: str
    """What the user types; `[a-z0-9][a-z0-9-]*`, unique within its kind."""
    summary: str
    """One line for `orchard plugins`."""
    factory: str | Callable[..., Any]
    """`package.module:attribute` or a callable. Called as `factory(config)`, or `factory()` without one."""
    config: str | type | None = None
    """`package.module:attribute` or a pydantic model: the options it takes; None: no options."""
    argument: str = ""
    """The option that the text after `name:` fills, as in `workbench:16`; empty: none is taken."""
    api_version: int = API_VERSION
    """The plugin API it was written for."""
    capabilities: Any = None
    """Static capabilities, such as HarnessCapabilities, or `package.module:attribute` of them, or None."""
    requires: tuple[str, ...] = field(default=())
    """Modules that must be importable before the factory is called, such as an extra's package."""
    extra: str = ""
    """Requirement that brings `requires`, such as `orchard-domain-claw[bench]`, for the error's hint."""
