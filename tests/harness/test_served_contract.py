"""Harnesses that reach a task's tools by MCP and by command line honour the contract like any other."""

from __future__ import annotations

import pytest

from orchard_core import Harness, SandboxProvider, load_provider
from orchard_core.testing import HarnessSuite

from .served import CliHarness, McpHarness


class TestByMcp(HarnessSuite):
    @pytest.fixture
    def harness(self) -> Harness:
        return McpHarness()


class TestByCommandLine(HarnessSuite):
    async def make_provider(self) -> SandboxProvider:
        return load_provider("local")

    @pytest.fixture
    def harness(self) -> Harness:
        return CliHarness()
