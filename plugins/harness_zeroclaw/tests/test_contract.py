"""What every harness must do, in real sandboxes."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest
from orchard_harness_zeroclaw.config import ZeroClawConfig
from orchard_harness_zeroclaw.harness import ZeroClaw

from orchard_core import Harness, SandboxProvider
from orchard_core.testing import HarnessSuite, provider_or_skip


class ZeroClawSuite(HarnessSuite):
    """In the local provider, for a program cannot be shown inside any lesser one."""

    mcp_name: ClassVar[str] = "orchard__{}"
    shell_tool: ClassVar[str] = "shell"

    async def make_provider(self) -> SandboxProvider:
        """The local one."""
        return await provider_or_skip()


class TestStandIn(ZeroClawSuite):
    """The stand-in, which honours the published contract."""

    @pytest.fixture
    def harness(self, standin: Path) -> Harness:
        """The harness with that program."""
        return ZeroClaw(ZeroClawConfig(binary=standin))


class TestReal(ZeroClawSuite):
    """ZeroClaw itself."""

    @pytest.fixture
    def harness(self, real: Path) -> Harness:
        """The harness with that program."""
        return ZeroClaw(ZeroClawConfig(binary=real))
