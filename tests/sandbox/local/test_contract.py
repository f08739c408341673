"""The local provider does what every sandbox provider must."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from orchard_core.sandbox.contract import SandboxProvider
from orchard_core.sandbox.local.provider import LocalProvider
from orchard_core.testing.suites.sandbox.suite import SandboxSuite


class TestLocalProvider(SandboxSuite):
    """With the real bubblewrap and the real agent."""

    @pytest_asyncio.fixture
    async def provider(self) -> AsyncIterator[SandboxProvider]:
        made = LocalProvider()
        yield made
        await made.close()
