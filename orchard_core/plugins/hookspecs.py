"""Every hook a plugin may implement. Registration hooks return light descriptors: import nothing heavy here.

from orchard_core import Descriptor, hookimpl

@hookimpl
def orchard_harnesses():
    return [Descriptor(name="mine", summary="My harness", factory="my_package.harness:MyHarness")]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

from orchard_core.types.plugin import Descriptor

if TYPE_CHECKING:
    import typer

    from orchard_core.types.events import Event

hookspec = pluggy.HookspecMarker("orchard")
hookimpl = pluggy.HookimplMarker("orchard")


@hookspec
def orchard_sandbox_providers() -> list[Descriptor]:  # type: ignore[empty-body]
    """Sandbox providers; a factory gives a SandboxProvider."""


@hookspec
def orchard_harnesses() -> list[Descriptor]:  # type: ignore[empty-body]
    """Harnesses; a factory gives a Harness. `capabilities` is a HarnessCapabilities."""


@hookspec
def orchard_tasksets() -> list[Descriptor]:  # type: ignore[empty-body]
    """Task sets; a factory gives a TaskSet."""


@hookspec
def orchard_rewards() -> list[Descriptor]:  # type: ignore[empty-body]
    """Rewards by name; a factory gives a Reward."""


@hookspec
def orchard_trainers() -> list[Descriptor]:  # type: ignore[empty-body]
    """Trainers; a factory gives a Trainer."""


@hookspec
def orchard_models() -> list[Descriptor]:  # type: ignore[empty-body]
    """Models; a factory gives a Model."""


@hookspec
def orchard_dataset_formats() -> list[Descriptor]:  # type: ignore[empty-body]
    """Formats to import datasets from and export them to; a factory gives a DatasetFormat."""


@hookspec
def orchard_workforces() -> list[Descriptor]:  # type: ignore[empty-body]
    """Places where the workers of a shared run run; a factory gives a Workforce."""


@hookspec
def orchard_commands(app: typer.Typer) -> None:
    """Add commands to the `orchard` command line."""


@hookspec
def orchard_on_event(event: Event) -> None:
    """Observe a run. Called in a worker thread, in order; a slow observer loses events, which is counted."""
