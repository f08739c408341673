"""The shared state in Redis, as it is while the server is there."""

from __future__ import annotations

from orchard_env.service.state.redis.beats import RedisBeats
from orchard_env.service.state.redis.leases import RedisLeases
from orchard_env.service.state.redis.ledgers import RedisLedgers
from orchard_env.service.state.redis.link import RedisLink
from orchard_env.service.state.redis.rates import RedisRates
from orchard_env.service.state.redis.replicas import RedisReplicas
from orchard_env.service.state.redis.settings import RedisSettings
from orchard_env.service.state.redis.tables import RedisTables
from orchard_env.service.state.redis.topics import RedisTopics
from orchard_env.service.state.values import StateHealth


class RedisState:
    """All of it. Every call raises StateUnavailable while the server is away; it comes back by itself."""

    def __init__(self, settings: RedisSettings) -> None:
        """Connects with the first call. Raises ConfigError without the extra."""
        self.link = RedisLink(settings)
        self.leases = RedisLeases(self.link)
        self.rates = RedisRates(self.link)
        self.ledgers = RedisLedgers(self.link)
        self.tables = RedisTables(self.link)
        self.topics = RedisTopics(self.link)
        self.replicas = RedisReplicas(self.link)
        self.beats = RedisBeats(self.link)

    def health(self) -> StateHealth:
        """Whether the server is there."""
        return self.link.health()

    async def close(self) -> None:
        """Close every connection."""
        await self.link.close()
