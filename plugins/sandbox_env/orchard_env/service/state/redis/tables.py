"""Small tables in Redis: a hash and its version."""

from __future__ import annotations

from collections.abc import Mapping

from orchard_env.service.state.redis.link import RedisLink
from orchard_env.service.state.values import Table

_STEP = """
local t = redis.call('TIME')
-- Begins at the time, so that no version comes back when the server forgot the last one.
local last = tonumber(redis.call('GET', KEYS[2]) or '0')
local next = string.format('%.0f', math.max(last + 1, t[1] * 1000 + math.floor(t[2] / 1000)))
redis.call('SET', KEYS[2], next)
redis.call('PUBLISH', KEYS[3], next)
return next
"""
_PUT = "for i = 1, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end" + _STEP
_REMOVE = "redis.call('HDEL', KEYS[1], ARGV[1])" + _STEP
_RESTORE = "if redis.call('EXISTS', KEYS[2]) == 1 then return 0 end\n" + _PUT
_READ = "return {redis.call('GET', KEYS[2]), redis.call('HGETALL', KEYS[1])}"


class RedisTables:
    """As Tables."""

    def __init__(self, link: RedisLink) -> None:
        self._link = link

    async def put(self, table: str, rows: Mapping[str, bytes]) -> None:
        """As Tables."""
        if rows:
            await self._link.run(_PUT, self._keys(table), _flat(rows))

    async def remove(self, table: str, key: str) -> None:
        """As Tables."""
        await self._link.run(_REMOVE, self._keys(table), [key])

    async def read(self, table: str) -> Table:
        """As Tables."""
        version, flat = await self._link.run(_READ, self._keys(table)[:2], [])
        pairs = flat.items() if isinstance(flat, Mapping) else zip(flat[::2], flat[1::2], strict=True)
        return Table(version=int(version or 0), rows={key.decode(): value for key, value in pairs})

    async def version(self, table: str) -> int:
        """As Tables."""
        return int(await self._link.call("GET", self._keys(table)[1]) or 0)

    async def restore(self, table: str, rows: Mapping[str, bytes]) -> None:
        """Give a server that has forgotten the table what it held, all at once; nothing when it has one."""
        if rows:
            await self._link.run_now(_RESTORE, self._keys(table), _flat(rows))

    def _keys(self, table: str) -> list[str]:
        return [
            self._link.key("table", table),
            self._link.key("version", table),
            self._link.key("topic", f"table:{table}"),
        ]


def _flat(rows: Mapping[str, bytes]) -> list[str | bytes]:
    return [part for row in rows.items() for part in row]
