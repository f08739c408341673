"""Inspect's own checks of a sandbox, run by pytest in an interpreter that has Inspect."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from inspect_ai.util import SandboxEnvironment
from inspect_ai.util._sandbox.registry import registry_find_sandboxenv
from inspect_ai.util._sandbox.self_check import *  # noqa: F403
from orchard_env.adapters.inspect_ai import OrchardSandboxEnvironment


@pytest.fixture(scope="module")
async def shared() -> AsyncIterator[SandboxEnvironment]:
    """A sandbox as Inspect makes one of `sandbox="orchard"`."""
    kind = registry_find_sandboxenv("orchard")
    assert kind is OrchardSandboxEnvironment
    made = await kind.sample_init("check", None, {})
    yield made["default"]
    await kind.sample_cleanup("check", None, made, False)


@pytest.fixture
def sandbox_env(shared: SandboxEnvironment, request: pytest.FixtureRequest) -> SandboxEnvironment:
    """What every check is given."""
    users = shared.as_type(OrchardSandboxEnvironment).sandbox.capabilities.users
    if request.node.originalname == "test_exec_as_user" and not users:
        request.applymarker(pytest.mark.xfail(reason="the provider has one user a sandbox", strict=True))
    return shared
