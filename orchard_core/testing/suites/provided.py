"""What suites share that need sandboxes."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from orchard_core.sandbox.contract import SandboxProvider
from orchard_core.testing.fakes.provider import FakeProvider


@pytest.mark.asyncio
class ProvidedSuite:
    """Sandboxes come from `make_provider`."""

    async def make_provider(self) -> SandboxProvider:
        """A new provider; the fake one unless overridden. It may call `pytest.skip`."""
        return FakeProvider()

    @pytest_asyncio.fixture
    async def provider(self) -> AsyncIterator[SandboxProvider]:
        """Where sandboxes come from, closed at the end."""
        provider = await self.make_provider()
        yield provider
        await provider.close()
