"""What every harness must do, by the real OpenHands in real sandboxes."""

from __future__ import annotations

from typing import ClassVar

import pytest
from orchard_harness_openhands.harness import OpenHands

from orchard_core import Harness, SandboxProvider, SandboxUnavailable, load_provider
from orchard_core.testing import HarnessSuite, skip_without_isolation


@pytest.mark.slow
class TestContract(HarnessSuite):
    """The whole suite."""

    mcp_name: ClassVar[str] = "{}"

    async def make_provider(self) -> SandboxProvider:
        provider = load_provider("local")
        try:
            await provider.capabilities()
        except SandboxUnavailable as error:
            skip_without_isolation(error)
        return provider

    @pytest.fixture
    def harness(self, openhands: OpenHands) -> Harness:
        """With stock options but for the temperature."""
        return openhands
