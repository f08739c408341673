"""Fixtures for authors of plugins, there in every test once orchard-core is installed.

All imports lie inside the fixtures, so that pytest's own start-up costs nothing. The asynchronous ones need
pytest-asyncio and are missing without it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from orchard_core.gateway.server import Gateway
    from orchard_core.sandbox.contract import Sandbox
    from orchard_core.testing import FakeBlobs, FakeFeed, FakeModel, FakeProvider, FakeTaskSet


@pytest.fixture
def fake_provider() -> Iterator[FakeProvider]:
    """A provider of fake sandboxes: plain subprocesses in private directories, removed at the end."""
    from orchard_core.testing import FakeProvider

    provider = FakeProvider()
    yield provider
    provider.abandon()


@pytest.fixture
def fake_model() -> FakeModel:
    """A model that always answers `done`."""
    from orchard_core.testing import FakeModel

    return FakeModel()


@pytest.fixture
def fake_taskset() -> FakeTaskSet:
    """Three tasks of writing a number into a file, with rewards and solutions."""
    from orchard_core.testing import FakeTaskSet

    return FakeTaskSet.of(3)


@pytest.fixture
def fake_blobs() -> FakeBlobs:
    """Blobs in memory."""
    from orchard_core.testing import FakeBlobs

    return FakeBlobs()


@pytest.fixture
def fake_feed() -> FakeFeed:
    """A deterministic feed of ten steps."""
    from orchard_core.testing import FakeFeed

    return FakeFeed(steps=10)


if find_spec("pytest_asyncio") is not None:
    import pytest_asyncio

    @pytest_asyncio.fixture
    async def fake_sandbox() -> AsyncIterator[Sandbox]:
        """One fake sandbox, closed at the end."""
        from orchard_core.testing import FakeProvider
        from orchard_core.types.sandbox import SandboxSpec

        provider = FakeProvider()
        yield await provider.create(SandboxSpec())
        await provider.close()

    @pytest_asyncio.fixture
    async def local_sandbox() -> AsyncIterator[Sandbox]:
        """One isolated sandbox without network; skips the test where this host cannot isolate, unless
        ORCHARD_REQUIRE_LOCAL is 1."""
        from orchard_core.errors import SandboxUnavailable
        from orchard_core.plugins.lookup import load_provider
        from orchard_core.testing import skip_without_isolation
        from orchard_core.types.sandbox import SandboxSpec

        provider = load_provider("local")
        try:
            yield await provider.create(SandboxSpec())
        except SandboxUnavailable as error:
            skip_without_isolation(error)
        finally:
            await provider.close()

    @pytest_asyncio.fixture
    async def orchard_gateway() -> AsyncIterator[Gateway]:
        """A running gateway; open a session on it for each model."""
        from orchard_core.gateway.server import Gateway

        async with Gateway() as gateway:
            yield gateway
