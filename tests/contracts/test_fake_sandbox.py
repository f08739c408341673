"""The fake provider honours the sandbox suite, so that tests that lean on it mean something."""

from __future__ import annotations

from orchard_core import SandboxProvider
from orchard_core.testing import FakeProvider, SandboxSuite


class TestFakeProvider(SandboxSuite):
    """No agent and no isolation, and it says so."""

    has_agent = False
    ttl_s = 0.3

    async def make_provider(self) -> SandboxProvider:
        return FakeProvider()
