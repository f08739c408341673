"""Fixtures for authors of plugins, there in every test once orchard-core is installed. All imports lie inside
the fixtures, so that pytest's own start-up costs nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from orchard_core.testing import FakeBlobs, FakeFeed, FakeModel, FakeProvider, FakeTaskSet


@pytest.fixture
def fake_provider() -> Iterator[FakeProvider]:
    """A provider of fake sandboxes: plain subprocesses in private directories, closed at the end."""
    from orchard_core.testing import FakeProvider

    provider = FakeProvider()
    yield provider
    provider.discard()


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
