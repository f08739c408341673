"""Token buckets in Redis."""

from __future__ import annotations

from orchard_env.service.state.redis.link import RedisLink

_TAKE = """
local t = redis.call('TIME')
local now = t[1] + t[2] / 1000000
local count, per_s, burst = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local found = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens = tonumber(found[1] or burst)
local since = math.max(0, now - tonumber(found[2] or now))
tokens = math.min(burst, tokens + since * per_s)
local wait = 0
if tokens >= count then tokens = tokens - count else wait = (count - tokens) / per_s end
redis.call('HSET', KEYS[1], 'tokens', string.format('%.6f', tokens), 'at', string.format('%.6f', now))
redis.call('PEXPIRE', KEYS[1], math.ceil(burst / per_s * 1000) + 1000)
return string.format('%.6f', wait)
"""


class RedisRates:
    """As Rates."""

    def __init__(self, link: RedisLink) -> None:
        self._link = link

    async def take(self, bucket: str, *, count: float, per_s: float, burst: float) -> float:
        """As Rates."""
        return float(await self._link.run(_TAKE, [self._link.key("rate", bucket)], [count, per_s, burst]))
