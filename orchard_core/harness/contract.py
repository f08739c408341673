"""What a harness plugin gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from pydantic import JsonValue

from orchard_core.sandbox.contract import Sandbox
from orchard_core.tasks.contract import Tool
from orchard_core.types.harness import HarnessCapabilities, HarnessResult, Limits
from orchard_core.types.model import ModelEndpoint
from orchard_core.types.sandbox import ImageRef, Mount
from orchard_core.types.task import Task


@runtime_checkable
class Harness(Protocol):
    """Drives a model through a task. It never records: all its model traffic goes through `model`, which
    is a recorded gateway session. One object may run many tasks at once, so it keeps no state of a run."""

    @property
    def name(self) -> str:
        """As the user names it."""

    @property
    def version(self) -> str:
        """Its own version and that of the package it drives, such as `1.0.0 (mini-swe-agent 2.4.6)`."""

    @property
    def capabilities(self) -> HarnessCapabilities:
        """What it can do."""

    async def run(
        self, task: Task, sandbox: Sandbox, model: ModelEndpoint, tools: Sequence[Tool], limits: Limits
    ) -> HarnessResult:
        """Run one task to its end.

        A mistake of the agent's is a result. Raises HarnessError when the harness itself breaks; errors
        of the sandbox and the model (SandboxError, ModelError) pass through untouched. Cancelling the
        call ends everything it started.
        """


@runtime_checkable
class MountsNeeded(Protocol):
    """A harness whose program lies on the host and is shown inside, read-only. Optional."""

    async def mounts(self) -> Sequence[Mount]:
        """What its sandboxes need beside what the task asks for; made ready, such as by an installation, the
        first time, and once however many ask. Raises ConfigError when that cannot be."""


async def mounts_of(harness: Harness) -> Sequence[Mount]:
    """What a harness needs shown inside; nothing for most. Raises as `mounts`."""
    return await harness.mounts() if isinstance(harness, MountsNeeded) else ()


@runtime_checkable
class ImageChecked(Protocol):
    """A harness whose program must be in the image. Optional."""

    def check_image(self, image: ImageRef) -> None:
        """Refuse, before anything starts, an image that cannot hold its program. Raises ConfigError."""


@runtime_checkable
class SettingsRead(Protocol):
    """A harness that reads files of the user's, such as settings of the package it drives. Optional."""

    @property
    def settings_read(self) -> JsonValue:
        """What it read. Only its hash is stored, so that a run is not resumed with files that were edited."""
