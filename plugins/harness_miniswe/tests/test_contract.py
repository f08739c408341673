"""What every harness must do, with the real mini-swe-agent."""

from __future__ import annotations

from typing import ClassVar

import pytest
from orchard_harness_miniswe.harness import Miniswe
from orchard_harness_miniswe.settings import MinisweConfig
from pydantic import JsonValue

from orchard_core import Harness, SandboxProvider
from orchard_core.testing import HarnessSuite, provider_or_skip

PLAIN: dict[str, JsonValue] = {
    "model": {"observation_template": "{{ output.returncode }}\n{{ output.output }}"}
}
"""mini.yaml writes outputs as JSON with `\\u0027` for an apostrophe, where the suite looks for words as they
are."""


class TestToolCalls(HarnessSuite):
    """mini.yaml: commands travel as tool calls."""

    @pytest.fixture
    def harness(self) -> Harness:
        """The harness as it is by default, but for how outputs are written."""
        return Miniswe(MinisweConfig(overrides=PLAIN))


@pytest.mark.slow
class TestInRealSandboxes(TestToolCalls):
    """The same in namespaces of this machine."""

    async def make_provider(self) -> SandboxProvider:
        """The provider `local`, where it can be had."""
        return await provider_or_skip()


class TestText(HarnessSuite):
    """mini_textbased.yaml: commands stand in the text."""

    native_calls: ClassVar[bool] = False

    @pytest.fixture
    def harness(self) -> Harness:
        """The harness with a config for models without function calling."""
        return Miniswe(MinisweConfig(config_file="mini_textbased.yaml"))
