"""The fake harness honours the harness suite; real ones run it in their own distributions."""

from __future__ import annotations

import pytest

from orchard_core.testing import FakeHarness, HarnessSuite


class TestFakeHarness(HarnessSuite):
    @pytest.fixture
    def harness(self) -> FakeHarness:
        return FakeHarness()
