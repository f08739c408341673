"""What every harness must do, in real sandboxes."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest
from orchard_harness_zeroclaw.config import ZeroClawConfig
from orchard_harness_zeroclaw.harness import ZeroClaw

from orchard_core import Harness, SandboxProvider, SandboxUnavailable, load_provider
from orchard_core.testing import HarnessSuite, skip_without_isolation


class ZeroClawSuite(HarnessSuite):
    """In the local provider, for a program cannot be shown inside any lesser one."""

    mcp_name: ClassVar[str] = "orchard__{}"
    shell_tool: ClassVar[str] = "shell"

    async def make_provider(self) -> SandboxProvider:
        """The local one."""
        provider = load_provider("local")
        try:
            await provider.capabilities()
        except SandboxUnavailable as error:
            skip_without_isolation(error)
        return provider


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
