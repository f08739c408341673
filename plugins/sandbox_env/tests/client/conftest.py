"""A real service over real local sandboxes, and what speaks to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from orchard_env import AsyncSandboxClient, AsyncSandboxInstance, SandboxClient, SandboxInstance

from orchard_core import load_provider

from ..service.conftest import isolation as isolation
from ..service.running import Running, parts_of, running


@pytest.fixture(scope="session")
def service(isolation: None) -> Iterator[Running]:
    """One for all these tests."""
    with running(lambda: parts_of(load_provider("local"))) as served:
        yield served


@pytest.fixture(scope="module")
def client(service: Running) -> Iterator[SandboxClient]:
    """The synchronous face."""
    with SandboxClient(service.url) as made:
        yield made


@pytest.fixture(scope="module")
def sandbox(client: SandboxClient) -> SandboxInstance:
    """A sandbox that is shared by a module's tests."""
    return client.create_sandbox("host")


@pytest.fixture
async def aclient(service: Running) -> AsyncIterator[AsyncSandboxClient]:
    """The asynchronous client."""
    async with AsyncSandboxClient(service.url) as made:
        yield made


@pytest.fixture
async def asandbox(aclient: AsyncSandboxClient, sandbox: SandboxInstance) -> AsyncSandboxInstance:
    """The shared sandbox, seen asynchronously."""
    return await aclient.get_sandbox(sandbox.sandbox_id)
