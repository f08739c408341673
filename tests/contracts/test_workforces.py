"""The built-in workforce keeps the contract."""

from __future__ import annotations

import pytest

from orchard_core import Workforce, load_workforce
from orchard_core.testing import WorkforceSuite


class TestProcesses(WorkforceSuite):
    """Workers as processes of this machine."""

    @pytest.fixture
    def workforce(self) -> Workforce:
        return load_workforce("processes")
