"""The fake harness and `react` honour the harness suite."""

from __future__ import annotations

import pytest

from orchard_core import Harness, PluginNotInstalled, UnknownPlugin
from orchard_core.plugins.lookup import load_harness
from orchard_core.testing import FakeHarness, HarnessSuite


class TestFakeHarness(HarnessSuite):
    @pytest.fixture
    def harness(self) -> FakeHarness:
        return FakeHarness()


class TestReact(HarnessSuite):
    @pytest.fixture
    def harness(self) -> Harness:
        return _react("react")


class TestReactByText(HarnessSuite):
    """Calls written as text, for models without native ones."""

    native_calls = False

    @pytest.fixture
    def harness(self) -> Harness:
        return _react("react:text")


def _react(spec: str) -> Harness:
    try:
        return load_harness(spec)
    except (UnknownPlugin, PluginNotInstalled):
        pytest.skip("orchard-harness-react is not installed here")
