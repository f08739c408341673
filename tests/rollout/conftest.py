"""A real gateway, fake sandboxes."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from orchard_core.gateway.retry import RetryPolicy
from orchard_core.gateway.server import Gateway
from orchard_core.testing import FakeProvider


@pytest.fixture
async def gateway() -> AsyncIterator[Gateway]:
    async with Gateway(retry=RetryPolicy(attempts=1)) as running:
        yield running


@pytest.fixture
async def provider() -> AsyncIterator[FakeProvider]:
    made = FakeProvider()
    yield made
    await made.close()
