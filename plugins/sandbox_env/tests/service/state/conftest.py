"""Every kind of shared state, for one suite."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from orchard_env.service.state.contract import SharedState
from orchard_env.service.state.memory import MemoryState
from orchard_env.service.state.open import open_state
from orchard_env.service.state.redis.state import RedisState

from ..redis_server import redis_server as redis_server
from ..redis_server import running_redis


@pytest.fixture(params=["memory", "redis", "degrading"])
async def state(request: pytest.FixtureRequest) -> AsyncIterator[SharedState]:
    """One kind of shared state, empty."""
    if request.param == "memory":
        yield MemoryState()
        return
    with running_redis() as server:
        settings = server.settings()
        made = RedisState(settings) if request.param == "redis" else open_state(settings)
        yield made
        await made.close()
