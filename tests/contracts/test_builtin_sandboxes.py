"""The providers that orchard-core brings honour the sandbox suite."""

from __future__ import annotations

from orchard_core import SandboxProvider, SandboxUnavailable
from orchard_core.plugins.lookup import load_provider
from orchard_core.testing import SandboxSuite, skip_without_isolation


class TestLocalProvider(SandboxSuite):
    """Namespaces of Linux; everything is isolated."""

    async def make_provider(self) -> SandboxProvider:
        provider = load_provider("local")
        try:
            await provider.capabilities()
        except SandboxUnavailable as error:
            skip_without_isolation(error)
        return provider


class TestProcessProvider(SandboxSuite):
    """The same agent without any isolation."""

    async def make_provider(self) -> SandboxProvider:
        return load_provider("process")
