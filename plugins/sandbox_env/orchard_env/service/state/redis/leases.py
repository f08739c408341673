"""Leases in Redis."""

from __future__ import annotations

from orchard_env.service.state.redis.link import RedisLink
from orchard_env.service.state.values import Lease

_NOW = "local t = redis.call('TIME') local now = t[1] * 1000 + math.floor(t[2] / 1000)\n"

_TAKE = (
    _NOW
    + """
local held = redis.call('GET', KEYS[1])
if held then
  local fence, holder = string.match(held, '^(%d+)|(.*)$')
  if holder ~= ARGV[1] then
    -- Longer than anybody asks for: the clock stepped back, and the holder may be long dead.
    if redis.call('PTTL', KEYS[1]) > tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
    return false
  end
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return fence
end
-- Begins at the time, so that fences grow even when the server forgot the last one.
local last = tonumber(redis.call('GET', KEYS[2]) or '0')
local fence = string.format('%.0f', math.max(last + 1, now))
redis.call('SET', KEYS[2], fence)
redis.call('SET', KEYS[1], fence .. '|' .. ARGV[1], 'PX', ARGV[2])
return fence
"""
)
_DROP = "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end return 1"
_CLAIM = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
local claimed = redis.call('GET', KEYS[2])
if claimed and claimed ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
return 1
"""


class RedisLeases:
    """As Leases."""

    def __init__(self, link: RedisLink) -> None:
        self._link = link

    async def take(self, name: str, holder: str, ttl_s: float) -> Lease | None:
        """As Leases."""
        keys = [self._key(name), self._link.key("fence", name)]
        fence = await self._link.run(_TAKE, keys, [holder, _ms(ttl_s)])
        return Lease(name=name, holder=holder, fence=int(fence)) if fence else None

    async def drop(self, lease: Lease) -> None:
        """As Leases."""
        await self._link.run(_DROP, [self._key(lease.name)], [_written(lease)])

    async def current(self, name: str) -> Lease | None:
        """As Leases."""
        held: bytes | None = await self._link.call("GET", self._key(name))
        if held is None:
            return None
        fence, _, holder = held.decode().partition("|")
        return Lease(name=name, holder=holder, fence=int(fence))

    async def claim(self, lease: Lease, item: str, ttl_s: float) -> bool:
        """As Leases."""
        keys = [self._key(lease.name), self._link.key("claim", lease.name, item)]
        return bool(await self._link.run(_CLAIM, keys, [_written(lease), _ms(ttl_s)]))

    def _key(self, name: str) -> str:
        return self._link.key("lease", name)


def _written(lease: Lease) -> str:
    return f"{lease.fence}|{lease.holder}"


def _ms(seconds: float) -> int:
    return max(1, round(seconds * 1000))
