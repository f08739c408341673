"""What every harness must do, with the real mini-swe-agent."""

from __future__ import annotations

from typing import ClassVar

import pytest
from orchard_harness_miniswe.harness import Miniswe
from orchard_harness_miniswe.settings import MinisweConfig

from orchard_core import Harness
from orchard_core.testing import HarnessSuite


class TestToolCalls(HarnessSuite):
    """mini.yaml: commands travel as tool calls."""

    @pytest.fixture
    def harness(self) -> Harness:
        """The harness as it is by default."""
        return Miniswe()


class TestText(HarnessSuite):
    """mini_textbased.yaml: commands stand in the text."""

    native_calls: ClassVar[bool] = False

    @pytest.fixture
    def harness(self) -> Harness:
        """The harness with a config for models without function calling."""
        return Miniswe(MinisweConfig(config_file="mini_textbased.yaml"))
