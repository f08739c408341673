"""The whole suite."""

from __future__ import annotations

import pytest

from orchard_core.testing.suites.sandbox.ending import EndingSuite
from orchard_core.testing.suites.sandbox.files import FilesSuite
from orchard_core.testing.suites.sandbox.given import ArgvSuite, GivenSuite
from orchard_core.testing.suites.sandbox.isolation import IsolationSuite
from orchard_core.testing.suites.sandbox.life import LifeSuite, LimitsSuite, ProcessLifeSuite
from orchard_core.testing.suites.sandbox.names import LinksSuite, NamesSuite
from orchard_core.testing.suites.sandbox.network import NetworkSuite
from orchard_core.testing.suites.sandbox.once import OnceSuite
from orchard_core.testing.suites.sandbox.output import OutputSuite
from orchard_core.testing.suites.sandbox.started import StartedSuite
from orchard_core.testing.suites.sandbox.trees import HostileTreesSuite, TreesSuite


@pytest.mark.asyncio
class SandboxSuite(
    ArgvSuite,
    GivenSuite,
    EndingSuite,
    OutputSuite,
    StartedSuite,
    OnceSuite,
    FilesSuite,
    NamesSuite,
    LinksSuite,
    TreesSuite,
    HostileTreesSuite,
    NetworkSuite,
    IsolationSuite,
    LifeSuite,
    ProcessLifeSuite,
    LimitsSuite,
):
    """What every sandbox provider must do. Subclass it and give the fixture `provider`:

    class TestMine(SandboxSuite):
        @pytest_asyncio.fixture
        async def provider(self):
            provider = MyProvider()
            yield provider
            await provider.close()
    """
