"""What every harness must do, by the real OpenHands in real sandboxes."""

from __future__ import annotations

from typing import ClassVar

import pytest
from orchard_harness_openhands.harness import OpenHands

from orchard_core import Harness, SandboxProvider
from orchard_core.testing import HarnessSuite, provider_or_skip


@pytest.mark.slow
class TestContract(HarnessSuite):
    """The whole suite."""

    mcp_name: ClassVar[str] = "{}"

    async def make_provider(self) -> SandboxProvider:
        return await provider_or_skip()

    @pytest.fixture
    def harness(self, openhands: OpenHands) -> Harness:
        """With stock options but for the temperature."""
        return openhands
