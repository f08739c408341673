"""The suite on a faulty kind of fake sandbox."""

from __future__ import annotations

from typing import Any, ClassVar

from orchard_core import (
    Command,
    ExecResult,
    SandboxProvider,
)
from orchard_core.testing import FakeProvider, FakeSandbox, SandboxSuite
from orchard_core.testing.fakes.process import end_marked


class Faulty(SandboxSuite):
    """Runs the suite on a faulty kind of fake sandbox."""

    has_agent = False
    ttl_s = 0.3
    sandbox_type: ClassVar[type[FakeSandbox]] = FakeSandbox
    caught_by: ClassVar[str] = ""

    async def make_provider(self) -> SandboxProvider:
        return CleaningProvider(sandbox_type=self.sandbox_type)


class CleaningProvider(FakeProvider):
    """Cleans up after sandboxes that do not."""

    async def close(self) -> None:
        for sandbox in self.created:
            await end_marked(sandbox.marker)
        await super().close()


class Changed(FakeSandbox):
    """Changes what exec is given or gives."""

    async def exec(self, command: Command, **options: Any) -> ExecResult:
        return self.after(await super().exec(self.before(command, options), **options))

    def before(self, command: Command, options: dict[str, Any]) -> Command:
        return command

    def after(self, result: ExecResult) -> ExecResult:
        return result
