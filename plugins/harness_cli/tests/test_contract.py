"""What every harness must do: the real CLIs, in real sandboxes."""

from __future__ import annotations

import os

import pytest
from orchard_harness_cli.adapter import find_adapter
from orchard_harness_cli.config import CliConfig
from orchard_harness_cli.harness import Cli

from orchard_core import Harness, SandboxProvider
from orchard_core.testing import HarnessSuite, provider_or_skip


class CliSuite(HarnessSuite):
    """The suite in the local provider, for programs cannot be shown inside any lesser one."""

    cli: str

    @pytest.fixture
    def harness(self, request: pytest.FixtureRequest) -> Harness:
        """The harness as it is by default."""
        wanted = "ORCHARD_NIGHTLY" in os.environ or request.node.get_closest_marker("nightly") is None
        if not wanted and not find_adapter(self.cli).npm.installed:
            pytest.skip(f"{self.cli} is not installed: `make nightly` fetches it by npm")
        return Cli(CliConfig(cli=self.cli))

    async def make_provider(self) -> SandboxProvider:
        """The local one."""
        return await provider_or_skip()


@pytest.mark.slow
class TestPi(CliSuite):
    """pi, in every CI run."""

    cli = "pi"


@pytest.mark.slow
@pytest.mark.nightly
class TestOpencode(CliSuite):
    """opencode."""

    cli = "opencode"
    mcp_name = "orchard_{}"
    patience_s = 180.0  # it repeats a failed call with ever longer pauses, whatever it is told


@pytest.mark.slow
@pytest.mark.nightly
class TestCodex(CliSuite):
    """codex."""

    cli = "codex"


@pytest.mark.slow
@pytest.mark.nightly
class TestClaude(CliSuite):
    """claude."""

    cli = "claude"


@pytest.mark.slow
@pytest.mark.nightly
class TestKimi(CliSuite):
    """kimi."""

    cli = "kimi"
    shell_tool = "Bash"
