"""What every harness must do, in each of its ways of talking to a model."""

from __future__ import annotations

from typing import ClassVar

import pytest
from orchard_harness_react.config import ReactConfig
from orchard_harness_react.harness import React

from orchard_core import Harness
from orchard_core.testing import HarnessSuite


class TestNative(HarnessSuite):
    """Native calls, whole answers."""

    @pytest.fixture
    def harness(self) -> Harness:
        """The harness as it is by default."""
        return React()


class TestStreamed(HarnessSuite):
    """Native calls, streamed answers."""

    @pytest.fixture
    def harness(self) -> Harness:
        """The harness, asking for server-sent events."""
        return React(ReactConfig(stream=True))


class TestText(HarnessSuite):
    """Calls written in the text."""

    native_calls: ClassVar[bool] = False

    @pytest.fixture
    def harness(self) -> Harness:
        """The harness for models without function calling."""
        return React(ReactConfig(protocol="text"))
