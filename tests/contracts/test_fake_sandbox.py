"""The fake provider honours the sandbox suite, so that tests that lean on it mean something."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from orchard_core.testing import FakeProvider, SandboxSuite


class TestFakeProvider(SandboxSuite):
    """No agent and no isolation, and it says so."""

    has_agent = False
    ttl_s = 0.3

    @pytest_asyncio.fixture
    async def provider(self) -> AsyncIterator[FakeProvider]:
        provider = FakeProvider()
        yield provider
        await provider.close()
