"""Sandboxes that claim terminals which are none."""

from __future__ import annotations

from typing import Any

from orchard_core import Command, SandboxProvider
from orchard_core.testing import FAKE_CAPABILITIES, FakeProcess, FakeSandbox
from tests.testing.faulty.sandbox import CleaningProvider, Faulty


class PipesForTerminals(Faulty):
    """What is called a terminal is the pipes that every command has."""

    class sandbox_type(FakeSandbox):  # noqa: N801
        async def start(self, command: Command, **options: Any) -> FakeProcess:
            options.pop("pty", None)
            return await super().start(command, **options)

    async def make_provider(self) -> SandboxProvider:
        able = FAKE_CAPABILITIES.model_copy(update={"pty": True})
        return CleaningProvider(sandbox_type=self.sandbox_type, capabilities=able)


class TestATerminalThatIsAPipe(PipesForTerminals):
    caught_by = "test_a_terminal_works_where_claimed"


class TestATerminalWithoutASize(PipesForTerminals):
    caught_by = "test_resizing_tells_the_program"


class TestATerminalThatShowsWhatWasNotWritten(PipesForTerminals):
    caught_by = "test_the_tail_is_not_cut_at_the_end"
