"""Signs of life in Redis: a sorted set of names by time."""

from __future__ import annotations

import time

from orchard_env.service.state.redis.link import RedisLink

STEP_S = 1.0
"""The server's clock and ours going apart by more between two answers is a step, not a drift."""

_NOW = "local t = redis.call('TIME') local now = t[1] * 1000 + math.floor(t[2] / 1000)\n"
_BEAT = (
    _NOW
    + """
redis.call('ZADD', KEYS[1], now, ARGV[1])
return string.format('%.0f', now)
"""
)
_SILENT = (
    _NOW
    + """
-- What is later than now was written before the clock stepped back, and would be heard of for hours.
for _, name in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], string.format('(%.0f', now), '+inf')) do
  redis.call('ZADD', KEYS[1], now, name)
end
local silent = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', string.format('(%.0f', now - ARGV[1]))
table.insert(silent, 1, string.format('%.0f', now))
return silent
"""
)


class RedisBeats:
    """As Beats. Silence is what was listened to: nothing is silent by a clock that stepped, or before this
    replica has listened for that long."""

    def __init__(self, link: RedisLink) -> None:
        self._link = link
        self._generation = 0
        self._since: float | None = None
        self._ahead: float | None = None

    async def beat(self, name: str) -> None:
        """As Beats."""
        asked = time.monotonic()
        self._compare(await self._link.run(_BEAT, [self._key], [name]), asked)

    async def forget(self, name: str) -> None:
        """As Beats."""
        await self._link.call("ZREM", self._key, name)

    async def silent(self, limit_s: float) -> list[str]:
        """As Beats."""
        asked = time.monotonic()
        now, *found = await self._link.run(_SILENT, [self._key], [round(limit_s * 1000)])
        self._compare(now, asked)
        health = self._link.health()
        if health.generation != self._generation:
            self._generation, self._since = health.generation, time.monotonic()
        if self._since is not None and time.monotonic() - self._since < limit_s:
            return []
        return [name.decode() for name in found]

    def _compare(self, told: bytes, asked: float) -> None:
        """Listen anew when the server's clock stepped since it was last seen."""
        answered = time.monotonic()
        ahead = int(told) / 1000 - answered
        if self._ahead is None or abs(ahead - self._ahead) > STEP_S + (answered - asked):
            self._since = answered
        self._ahead = ahead

    @property
    def _key(self) -> str:
        return self._link.key("beats")
