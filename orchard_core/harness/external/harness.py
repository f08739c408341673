"""What harnesses share that are programs beside the driver."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from orchard_core.harness.external.environment import ExternalProgram
from orchard_core.harness.external.run import run_external
from orchard_core.sandbox.contract import Sandbox
from orchard_core.tasks.contract import Tool
from orchard_core.types.harness import HarnessCapabilities, HarnessResult, Limits
from orchard_core.types.model import ModelEndpoint
from orchard_core.types.sandbox import Mount
from orchard_core.types.task import Task


class ExternalHarness(ABC):
    """A harness that is a program. Subclasses give the four things that differ."""

    @property
    @abstractmethod
    def name(self) -> str:
        """See Harness."""

    @property
    @abstractmethod
    def version(self) -> str:
        """See Harness."""

    @property
    @abstractmethod
    def capabilities(self) -> HarnessCapabilities:
        """See Harness."""

    @abstractmethod
    async def program(self) -> ExternalProgram:
        """What to run; made ready the first time. Raises ConfigError when it cannot be had."""

    async def mounts(self) -> Sequence[Mount]:
        """Nothing is shown inside, but this is when the program is made ready. Raises ConfigError."""
        await self.program()
        return ()

    async def run(
        self, task: Task, sandbox: Sandbox, model: ModelEndpoint, tools: Sequence[Tool], limits: Limits
    ) -> HarnessResult:
        """Run one task. Raises as `run_external` does."""
        program = await self.program()
        return await run_external(
            program, task=task, sandbox=sandbox, model=model, tools=tools, limits=limits
        )
