"""Signs of life in Redis: a sorted set of names by time."""

from __future__ import annotations

import time

from orchard_env.service.state.redis.link import RedisLink

_NOW = "local t = redis.call('TIME') local now = t[1] * 1000 + math.floor(t[2] / 1000)\n"
_BEAT = _NOW + "return redis.call('ZADD', KEYS[1], now, ARGV[1])"
_SILENT = (
    _NOW + "return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', '(' .. string.format('%.0f', now - ARGV[1]))"
)


class RedisBeats:
    """As Beats."""

    def __init__(self, link: RedisLink) -> None:
        self._link = link
        self._generation = 0
        self._since = time.monotonic()

    async def beat(self, name: str) -> None:
        """As Beats."""
        await self._link.run(_BEAT, [self._key], [name])

    async def forget(self, name: str) -> None:
        """As Beats."""
        await self._link.call("ZREM", self._key, name)

    async def silent(self, limit_s: float) -> list[str]:
        """As Beats."""
        found: list[bytes] = await self._link.run(_SILENT, [self._key], [round(limit_s * 1000)])
        health = self._link.health()
        if health.generation != self._generation:
            self._generation, self._since = health.generation, time.monotonic()
        if health.generation and time.monotonic() - self._since < limit_s:
            return []
        return [name.decode() for name in found]

    @property
    def _key(self) -> str:
        return self._link.key("beats")
