"""Services over real sandboxes."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from orchard_core import SandboxUnavailable, load_provider, open_sandbox
from orchard_core.testing import skip_without_isolation

from .running import Running, parts_of, running


@pytest.fixture(scope="session")
def isolation() -> None:
    """Skips, with the reason, where local sandboxes cannot be had."""
    import asyncio

    async def probe() -> None:
        async with open_sandbox("local"):
            pass

    try:
        asyncio.run(probe())
    except SandboxUnavailable as error:
        skip_without_isolation(error)


@pytest.fixture(scope="module")
def service(isolation: None) -> Iterator[Running]:
    """A service over the local provider; whoever calls is its only user."""
    with running(lambda: parts_of(load_provider("local"))) as served:
        yield served


@pytest.fixture
def client(service: Running) -> Iterator[httpx.Client]:
    """A client of it."""
    with service.client() as speaking:
        yield speaking


@pytest.fixture(scope="module")
def sandbox(service: Running) -> str:
    """The id of a sandbox that is ready, shared by a module's tests; the service's end is its end."""
    with service.client() as speaking:
        made = speaking.post("/sandboxes", json={"image": "host"}).raise_for_status().json()
        speaking.get(f"/sandboxes/{made['sandbox_id']}/wait").raise_for_status()
    return str(made["sandbox_id"])
