"""What a test does where the local provider cannot run."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

from orchard_core.errors import SandboxUnavailable
from orchard_core.plugins.lookup import load_provider
from orchard_core.sandbox.contract import SandboxProvider

REQUIRE_LOCAL = "ORCHARD_REQUIRE_LOCAL"


def skip_without_isolation(error: SandboxUnavailable) -> NoReturn:
    """Skip the test; or, with ORCHARD_REQUIRE_LOCAL=1, fail it, so that no green run hides that nothing was
    tried in a real sandbox."""
    if os.environ.get(REQUIRE_LOCAL) == "1":
        raise error
    pytest.skip(f"this host cannot isolate: {error}")


async def provider_or_skip(name: str = "local") -> SandboxProvider:
    """A provider that works here, for `make_provider`; else see `skip_without_isolation`."""
    provider = load_provider(name)
    try:
        await provider.capabilities()
    except SandboxUnavailable as error:
        skip_without_isolation(error)
    return provider
