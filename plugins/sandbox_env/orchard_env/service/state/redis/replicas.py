"""Heartbeats of replicas in Redis."""

from __future__ import annotations

from collections.abc import Mapping

from orchard_env.service.state.redis.link import RedisLink

_NOW = "local t = redis.call('TIME') local now = t[1] * 1000 + math.floor(t[2] / 1000)\n"
_BEAT = (
    _NOW
    + """
local till = string.format('%.0f', now + ARGV[2])
redis.call('HSET', KEYS[1], ARGV[1], till .. '|' .. ARGV[2] .. '|' .. ARGV[3])
redis.call('SET', KEYS[2], string.format('%.0f', now), 'NX')
return redis.call('GET', KEYS[2])
"""
)
_ALIVE = (
    _NOW
    + """
local alive = {}
local flat = redis.call('HGETALL', KEYS[1])
for i = 1, #flat, 2 do
  local till, lasts, note = string.match(flat[i + 1], '^(%d+)|(%d+)|(.*)$')
  if till and till - lasts > now then  -- before the clock stepped back; else the dead would live for hours
    till = string.format('%.0f', now + lasts)
    redis.call('HSET', KEYS[1], flat[i], till .. '|' .. lasts .. '|' .. note)
  end
  if till and tonumber(till) > now then
    alive[#alive + 1] = flat[i]
    alive[#alive + 1] = note
  else
    redis.call('HDEL', KEYS[1], flat[i])
  end
end
return alive
"""
)


class RedisReplicas:
    """As Replicas."""

    def __init__(self, link: RedisLink) -> None:
        self._link = link

    async def beat(self, replica: str, note: bytes, ttl_s: float) -> None:
        """As Replicas; tells the link, too, when the server has forgotten everything since the last beat."""
        keys = [self._link.key("replicas"), self._link.key("epoch")]
        await self._link.saw_epoch(await self._link.run(_BEAT, keys, [replica, round(ttl_s * 1000), note]))

    async def leave(self, replica: str) -> None:
        """As Replicas."""
        await self._link.call("HDEL", self._link.key("replicas"), replica)

    async def alive(self) -> Mapping[str, bytes]:
        """As Replicas."""
        flat = await self._link.run(_ALIVE, [self._link.key("replicas")], [])
        return {name.decode(): note for name, note in zip(flat[::2], flat[1::2], strict=True)}
