"""Refusing, before anything starts, what cannot work together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchard_core.errors import ConfigError, SandboxUnsupported
from orchard_core.harness.contract import Harness
from orchard_core.rollout.settings import RolloutSettings
from orchard_core.tasks.contract import TaskSet, ToolsKnown
from orchard_core.types.harness import Limits, ToolUse
from orchard_core.types.sandbox import Capabilities, ImageRef, Mount, SandboxSpec
from orchard_core.types.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedSpec:
    """A spec that the provider takes."""

    spec: SandboxSpec
    """The spec."""
    fallback: bool
    """The task named another image."""


def fit_spec(
    task: Task, spec: SandboxSpec, can: Capabilities, settings: RolloutSettings, mounts: Sequence[Mount] = ()
) -> FittedSpec:
    """The spec with what the harness needs shown inside, its image replaced by the host's files where that is
    allowed. Raises SandboxUnsupported."""
    if mounts and not can.mounts:
        raise SandboxUnsupported(
            f"the harness runs {mounts[0].target} inside the sandbox, and this provider shows nothing of the "
            "host there",
            hint="choose --sandbox local",
        )
    spec = spec.model_copy(update={"mounts": (*spec.mounts, *mounts)})
    if not can.private_paths and not settings.allow_shared_paths:
        raise SandboxUnsupported(
            f"task {task.id} names absolute paths such as {task.workdir}, and with this provider they "
            "are the host's own: rollouts would see each other's files",
            hint="choose --sandbox local",
        )
    if spec.image.kind in can.images:
        return FittedSpec(spec=spec, fallback=False)
    kinds = ", ".join(sorted(can.images)) or "none"
    if settings.allow_host_fallback and "host" in can.images:
        return FittedSpec(spec=spec.model_copy(update={"image": ImageRef(kind="host")}), fallback=True)
    raise SandboxUnsupported(
        f"task {task.id} needs the image {spec.image}; the provider takes: {kinds}",
        hint=f"choose another --sandbox{_instead(spec.image, can)}",
    )


def _instead(image: ImageRef, can: Capabilities) -> str:
    """What else helps where the provider does not take this image."""
    if image.kind == "host":
        return ", or an image that stands for this machine: --sandbox-option host_image=IMAGE"
    if "host" in can.images:
        return ", or --allow-host-fallback to run on this machine's own files"
    return ""


def check_known_tools(task: Task, taskset: TaskSet, harness: Harness) -> None:
    """Refuse, before anything starts, a harness that cannot reach the tools a task will bring.

    Only a task set that offers `tools_of` can be asked; with any other, `check_tools` tells once the task's
    session is open. Raises ConfigError.
    """
    if harness.capabilities.tools is not ToolUse.NONE or not isinstance(taskset, ToolsKnown):
        return
    try:
        names = [tool.name for tool in taskset.tools_of(task) or ()]
    except Exception:  # noqa: BLE001 - border: a broken task is named when its turn comes
        return
    check_tools(harness, names)


def check_tools(harness: Harness, names: Sequence[str]) -> None:
    """Refuse a harness that cannot reach the tools of these names. Raises ConfigError."""
    if names and harness.capabilities.tools is ToolUse.NONE:
        raise ConfigError(
            f"harness {harness.name} takes no tools, and the task brings {', '.join(names)}",
            hint="choose a harness that does, such as react",
        )


def check_limits(harness: Harness, limits: Limits) -> None:
    """Refuse a limit that nothing would hold. The gateway holds all but turns, which only a harness knows.
    Raises ConfigError."""
    if limits.turns is not None and not harness.capabilities.turn_limit:
        raise ConfigError(
            f"harness {harness.name} cannot stop after a number of turns, and {limits.turns} were set",
            hint=f"--max-calls {limits.turns} bounds its model calls of any kind instead",
        )
