"""The shared state that a service was set to have."""

from __future__ import annotations

from orchard_env.service.state.contract import SharedState
from orchard_env.service.state.memory import MemoryState
from orchard_env.service.state.redis.settings import RedisSettings


def open_state(redis: RedisSettings | None = None) -> SharedState:
    """In memory, or in Redis with each replica going on by itself while that is away. Raises ConfigError
    without the extra. Connects with the first call: a service starts without its Redis, and says so."""
    if redis is None:
        return MemoryState()
    from orchard_env.service.state.degrading import DegradingState
    from orchard_env.service.state.redis.state import RedisState

    return DegradingState(RedisState(redis))
