"""The providers that orchard-core brings honour the sandbox suite."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from orchard_core import SandboxProvider, SandboxUnavailable
from orchard_core.plugins.lookup import load_provider
from orchard_core.testing import SandboxSuite


class TestLocalProvider(SandboxSuite):
    """Namespaces of Linux; everything is isolated."""

    @pytest_asyncio.fixture
    async def provider(self) -> AsyncIterator[SandboxProvider]:
        provider: SandboxProvider = load_provider("local")
        try:
            await provider.capabilities()
        except SandboxUnavailable as error:
            pytest.skip(f"this host cannot isolate: {error}")
        yield provider
        await provider.close()


class TestProcessProvider(SandboxSuite):
    """The same agent without any isolation."""

    @pytest_asyncio.fixture
    async def provider(self) -> AsyncIterator[SandboxProvider]:
        provider: SandboxProvider = load_provider("process")
        yield provider
        await provider.close()
