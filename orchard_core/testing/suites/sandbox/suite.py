"""The whole suite."""

from __future__ import annotations

import pytest

from orchard_core.testing.suites.sandbox.adoption import AdoptionSuite
from orchard_core.testing.suites.sandbox.ending import EndingSuite
from orchard_core.testing.suites.sandbox.files import FilesSuite
from orchard_core.testing.suites.sandbox.given import ArgvSuite, GivenSuite
from orchard_core.testing.suites.sandbox.isolation import IsolationSuite
from orchard_core.testing.suites.sandbox.life import LifeSuite, LimitsSuite, ProcessLifeSuite
from orchard_core.testing.suites.sandbox.names import LinksSuite, NamesSuite
from orchard_core.testing.suites.sandbox.naming import NamingSuite
from orchard_core.testing.suites.sandbox.network import NetworkSuite
from orchard_core.testing.suites.sandbox.once import OnceSuite
from orchard_core.testing.suites.sandbox.output import OutputSuite
from orchard_core.testing.suites.sandbox.pty import TerminalsSuite
from orchard_core.testing.suites.sandbox.snapshots import ForksSuite, SnapshotsSuite
from orchard_core.testing.suites.sandbox.started import StartedSuite
from orchard_core.testing.suites.sandbox.trees import HostileTreesSuite, TreesSuite


@pytest.mark.asyncio
@pytest.mark.asyncio(loop_scope="class")
class SandboxSuite(
    ArgvSuite,
    GivenSuite,
    EndingSuite,
    OutputSuite,
    StartedSuite,
    TerminalsSuite,
    OnceSuite,
    FilesSuite,
    NamesSuite,
    LinksSuite,
    TreesSuite,
    HostileTreesSuite,
    NetworkSuite,
    IsolationSuite,
    LifeSuite,
    NamingSuite,
    AdoptionSuite,
    SnapshotsSuite,
    ForksSuite,
    ProcessLifeSuite,
    LimitsSuite,
):
    """What every sandbox provider must do. Subclass it and say how to make yours:

    class TestMine(SandboxSuite):
        async def make_provider(self):
            return MyProvider()

    An asynchronous fixture of yours that meets a sandbox is declared with
    `pytest_asyncio.fixture(loop_scope="class")`.
    """
