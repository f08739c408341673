"""The parts of a matrix, each loaded once however many cells use it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any, TypeVar

from orchard_core.errors import (
    ConfigError,
    OrchardError,
    PluginError,
    RecordCorrupt,
    RunFutile,
    RunLocked,
    SandboxUnsupported,
    TaskError,
)
from orchard_core.gateway.contract import Model
from orchard_core.harness.contract import Harness
from orchard_core.plugins import lookup
from orchard_core.rollout.matrix.plan import MatrixPart, MatrixPlan, MatrixShared, PlannedCell
from orchard_core.rollout.opening import plugin_versions
from orchard_core.rollout.parts import RolloutParts
from orchard_core.rollout.session import ModelGateway
from orchard_core.sandbox.contract import SandboxProvider
from orchard_core.tasks.contract import TaskSet
from orchard_core.types.plugin import PluginKind

T = TypeVar("T")
REFUSALS = (ConfigError, PluginError, TaskError, SandboxUnsupported, RecordCorrupt, RunLocked, RunFutile)
"""What keeps one cell from running and says nothing about the others."""


def check_names(plan: MatrixPlan, given: Mapping[tuple[str, str], Any]) -> None:
    """Raises UnknownPlugin for a part that no machine could load: a slip, unlike what is missing here."""
    for cell in plan.cells:
        for kind, part in (
            (PluginKind.HARNESS, cell.harness),
            (PluginKind.MODEL, cell.model),
            (PluginKind.TASKSET, cell.taskset),
        ):
            if (kind.value, part.text) not in given:
                lookup.check_named(kind, part.name)


class Loader:
    """Loads by name, or hands out what the caller made; remembers failures as well as successes."""

    def __init__(self, stack: AsyncExitStack, *, given: Mapping[tuple[str, str], Any]) -> None:
        """`given` is by kind and what the table calls it; what is loaded here is closed with `stack`."""
        self._stack = stack
        self._made: dict[tuple[str, str], Any] = dict(given)

    def provider(self, part: MatrixPart) -> SandboxProvider:
        """The sandbox provider. Raises what `lookup` raises, as all of these do."""
        return self._once("sandbox", part, lambda: self._closed(lookup.load_provider, part))

    def harness(self, part: MatrixPart) -> Harness:
        """A harness."""
        return self._once("harness", part, lambda: lookup.load_harness(part.name, **part.options))

    def model(self, part: MatrixPart) -> Model:
        """A model."""
        return self._once("model", part, lambda: self._closed(lookup.load_model, part))

    def taskset(self, part: MatrixPart) -> TaskSet:
        """A task set."""
        return self._once("taskset", part, lambda: lookup.load_taskset(part.name, **part.options))

    def parts(self, cell: PlannedCell, shared: MatrixShared, gateway: ModelGateway) -> RolloutParts:
        """Everything a cell's rollouts are put together from, named as `orchard run` would name it."""
        return RolloutParts(
            taskset=self.taskset(cell.taskset),
            harness=self.harness(cell.harness),
            model=self.model(cell.model),
            model_name="" if cell.model.options else cell.model.name,
            provider=self.provider(shared.sandbox),
            gateway=gateway,
            limits=shared.limits,
            settings=shared.settings,
            versions=plugin_versions(),
        )

    def _closed(self, load: Callable[..., T], part: MatrixPart) -> T:
        made = load(part.name, **part.options)
        self._stack.push_async_callback(made.close)  # type: ignore[attr-defined] # providers and models have it
        return made

    def _once(self, kind: str, part: MatrixPart, make: Callable[[], T]) -> T:
        key = (kind, part.text)
        if key not in self._made:
            try:
                self._made[key] = make()
            except REFUSALS as error:
                self._made[key] = error
        made = self._made[key]
        if isinstance(made, OrchardError):
            raise made
        loaded: T = made
        return loaded
