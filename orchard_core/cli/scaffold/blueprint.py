"""What a new plugin of each kind consists of."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from orchard_core.errors import ConfigError

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_LONGEST = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Blueprint:
    """One kind of plugin."""

    kind: str
    """As `orchard plugins` lists it."""
    module: str
    """The file that the author edits, without its ending."""
    hook: str
    """The registration hook."""
    factory: str
    """What the descriptor names in that module; empty: the class of the plugin's name."""
    try_it: str
    """A command that uses the plugin at once; `NAME` is its name."""
    dependencies: tuple[str, ...] = ("orchard-core>=0.1.0",)
    """Requirements."""


BLUEPRINTS: Mapping[str, Blueprint] = {
    plan.kind: plan
    for plan in (
        Blueprint(
            kind="harness",
            module="harness",
            hook="orchard_harnesses",
            factory="",
            try_it="orchard run workbench:2 --harness NAME --model oracle --out runs/NAME",
            dependencies=("aiohttp>=3.12", "orchard-core>=0.1.0"),
        ),
        Blueprint(
            kind="sandbox",
            module="provider",
            hook="orchard_sandbox_providers",
            factory="open_provider",
            try_it="python -c \"from orchard_core import load_provider; print(load_provider('NAME').name)\"",
        ),
        Blueprint(
            kind="reward",
            module="reward",
            hook="orchard_rewards",
            factory="",
            try_it="python -c \"from orchard_core import load_reward; print(load_reward('NAME').version)\"",
        ),
        Blueprint(
            kind="trainer",
            module="trainer",
            hook="orchard_trainers",
            factory="",
            try_it="python -c \"from orchard_core import load_trainer; print(load_trainer('NAME').name)\"",
        ),
        Blueprint(
            kind="taskset",
            module="taskset",
            hook="orchard_tasksets",
            factory="open_taskset",
            try_it="orchard doctor NAME",
        ),
    )
}
"""Every kind that can be begun from a template."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginName:
    """One name in all its spellings."""

    name: str
    """As users type it, such as `my-loop`."""
    distribution: str
    """Such as `orchard-harness-my-loop`."""
    package: str
    """Such as `orchard_harness_my_loop`."""
    class_name: str
    """Such as `MyLoop`."""

    @classmethod
    def of(cls, kind: str, name: str) -> PluginName:
        """Raises ConfigError for a name that cannot be all of these."""
        if not _NAME.fullmatch(name) or len(name) > _LONGEST:
            raise ConfigError(
                f"{name[:80]!r} cannot be a plugin's name",
                hint=f"use lower-case letters, digits and single dashes, such as my-{kind}",
            )
        distribution = f"orchard-{kind}-{name}"
        class_name = "".join(part.capitalize() for part in name.split("-"))
        return cls(
            name=name,
            distribution=distribution,
            package=distribution.replace("-", "_"),
            # `test` in front of a letter would make pytest collect the class.
            class_name=f"{class_name}Plugin" if class_name.startswith("Test") else class_name,
        )
