"""The providers that orchard-core brings honour the sandbox suite."""

from __future__ import annotations

from orchard_core import SandboxProvider
from orchard_core.plugins.lookup import load_provider
from orchard_core.testing import SandboxSuite, provider_or_skip


class TestLocalProvider(SandboxSuite):
    """Namespaces of Linux; everything is isolated."""

    async def make_provider(self) -> SandboxProvider:
        return await provider_or_skip()


class TestProcessProvider(SandboxSuite):
    """The same agent without any isolation."""

    async def make_provider(self) -> SandboxProvider:
        return load_provider("process")
