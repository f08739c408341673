"""The contract suite of rewards that bring their own examples."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from orchard_core.reward.contract import Evidence, Example, Exemplified, Reward
from orchard_core.sandbox.contract import SandboxProvider
from orchard_core.testing.collect import evidence_of
from orchard_core.testing.suites.reward import RewardSuite
from orchard_core.types.sandbox import SandboxSpec


class ExampleRewardSuite(RewardSuite):
    """Subclasses give the fixture `reward`, whose `examples` are what it is tried on."""

    @pytest.fixture
    def exemplified(self, reward: Reward) -> Exemplified:
        """The reward, known to offer examples."""
        if not isinstance(reward, Exemplified):
            pytest.fail("it offers no `examples`: add that method, or subclass RewardSuite")
        return reward

    @pytest_asyncio.fixture
    async def solved(self, provider: SandboxProvider, exemplified: Exemplified) -> AsyncIterator[Evidence]:
        """Evidence of the example that deserves the best score."""
        yield await _left(provider, exemplified.examples().solved)

    @pytest_asyncio.fixture
    async def failed(self, provider: SandboxProvider, exemplified: Exemplified) -> AsyncIterator[Evidence]:
        """Evidence of the other."""
        yield await _left(provider, exemplified.examples().failed)


async def _left(provider: SandboxProvider, example: Example) -> Evidence:
    async with await provider.create(SandboxSpec(workdir=example.task.workdir)) as sandbox:
        for path, content in example.files.items():
            await sandbox.write(path, content)
        return await evidence_of(example.task, sandbox, outcome=example.outcome)
