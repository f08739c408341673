"""What the tests of every harness stand on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import ClassVar

import pytest
import pytest_asyncio

from orchard_core.harness.contract import Harness, mounts_of
from orchard_core.sandbox.contract import Sandbox, SandboxProvider
from orchard_core.testing.suites.harness.stage import Stage, stage
from orchard_core.testing.suites.provided import ProvidedSuite
from orchard_core.types.harness import HarnessCapabilities
from orchard_core.types.sandbox import SandboxSpec
from orchard_core.types.task import Task


class HarnessTests(ProvidedSuite):
    """Fixtures; a subclass gives `harness`."""

    patience_s: ClassVar[float] = 60.0
    """Seconds within which a run that cannot go on must have ended."""

    @pytest_asyncio.fixture
    async def spec(self, harness: Harness) -> SandboxSpec:
        """What sandboxes are made of: what the harness needs shown inside is."""
        return SandboxSpec(mounts=tuple(await mounts_of(harness)))

    @pytest_asyncio.fixture
    async def sandbox(self, provider: SandboxProvider, spec: SandboxSpec) -> AsyncIterator[Sandbox]:
        """One sandbox."""
        async with await provider.create(spec) as made:
            yield made

    @pytest_asyncio.fixture
    async def stage(self, harness: Harness) -> AsyncIterator[Stage]:
        """A gateway before which the harness plays."""
        async with stage(harness) as made:
            yield made

    @pytest.fixture
    def able(self, harness: Harness) -> HarnessCapabilities:
        """What the harness claims."""
        return harness.capabilities

    def task(self, name: str = "one", instruction: str = "Write 42 into answer.txt.") -> Task:
        """A task for the suite."""
        return Task(id=name, taskset="suite", instruction=instruction, digest=name)
