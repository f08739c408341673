"""Ledgers in Redis: a hash of entries, a hash of sums, and the times of recent removals."""

from __future__ import annotations

from collections.abc import Mapping

from orchard_env.service.state.ledger_book import FORGOTTEN_S
from orchard_env.service.state.redis.link import RedisLink
from orchard_env.service.state.values import Amounts, Full, Ledger

_PARTS = """
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local entries, totals, dropped = KEYS[1], KEYS[2], KEYS[3]
local function split(text)
  local parts = {}
  for part in string.gmatch(text, '[^,]+') do parts[#parts + 1] = tonumber(part) end
  return parts
end
local function find(entry)
  local text = redis.call('HGET', entries, entry)
  if not text then return nil end
  local made, amounts = string.match(text, '^(%d+)|(.*)$')
  return tonumber(made), split(amounts)
end
local function add(amounts, sign)
  for i, amount in ipairs(amounts) do redis.call('HINCRBY', totals, i, sign * amount) end
end
local function remove(entry)
  local made, amounts = find(entry)
  if made then
    redis.call('HDEL', entries, entry)
    add(amounts, -1)
  end
end
local function put(entry, text, made)
  local _, before = find(entry)
  -- First, because a server without memory refuses it: a script is refused whole or goes through.
  redis.call('HSET', entries, entry, string.format('%.0f', made) .. '|' .. text)
  redis.call('ZREM', dropped, entry)
  add(before or {}, -1)
  add(split(text), 1)
end
"""
_HOLD = (
    _PARTS
    + """
local _, before = find(ARGV[1])
local limits = split(ARGV[3])
for i, new in ipairs(split(ARGV[2])) do
  local used = tonumber(redis.call('HGET', totals, i) or '0')
  local old = before and before[i] or 0
  if limits[i] >= 0 and new > old and used - old + new > limits[i] then return {i, used, limits[i]} end
end
put(ARGV[1], ARGV[2], now)
return {}
"""
)
_RESTORE = (
    _PARTS
    + """
if ARGV[3] == 'unless dropped' and redis.call('ZSCORE', dropped, ARGV[1]) then return 0 end
put(ARGV[1], ARGV[2], now)
return 1
"""
)
_DROP = (
    _PARTS
    + """
remove(ARGV[1])
redis.call('ZADD', dropped, now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', dropped, '-inf', now - tonumber(ARGV[2]))
redis.call('PEXPIRE', dropped, ARGV[2])
return 1
"""
)
_SETTLE = (
    _PARTS
    + """
local seen = now - tonumber(ARGV[1])
local stands = {}
for i = 4, #ARGV, 2 do stands[ARGV[i]] = true end
for _, entry in ipairs(redis.call('HKEYS', entries)) do
  local made, amounts = find(entry)
  if made > now then  -- before the clock stepped back; else it would be young for hours
    put(entry, table.concat(amounts, ','), now)
    made = now
  end
  if not stands[entry] and made <= seen - tonumber(ARGV[2]) then remove(entry) end
end
for i = 4, #ARGV, 2 do
  local gone = tonumber(redis.call('ZSCORE', dropped, ARGV[i]) or '-1')
  if gone < seen then put(ARGV[i], ARGV[i + 1], find(ARGV[i]) or seen) end
end
redis.call('ZREMRANGEBYSCORE', dropped, '-inf', seen - tonumber(ARGV[3]))
return 1
"""
)


class RedisLedgers:
    """As Ledgers."""

    def __init__(self, link: RedisLink) -> None:
        self._link = link

    async def hold(self, ledger: str, entry: str, amounts: Amounts, limits: Amounts) -> Full | None:
        """As Ledgers."""
        found = await self._link.run(_HOLD, self._keys(ledger), [entry, _text(amounts), _text(limits)])
        return Full(index=found[0] - 1, used=found[1], limit=found[2]) if found else None

    async def drop(self, ledger: str, entry: str) -> None:
        """As Ledgers."""
        await self._link.run(_DROP, self._keys(ledger), [entry, round(FORGOTTEN_S * 1000)])

    async def settle(
        self, ledger: str, standing: Mapping[str, Amounts], *, age_s: float, grace_s: float
    ) -> None:
        """As Ledgers."""
        rows = [part for entry, amounts in standing.items() for part in (entry, _text(amounts))]
        times = [round(seconds * 1000) for seconds in (age_s, grace_s, FORGOTTEN_S)]
        await self._link.run(_SETTLE, self._keys(ledger), [*times, *rows])

    async def read(self, ledger: str) -> Ledger:
        """As Ledgers."""
        found: Mapping[bytes, bytes] = await self._link.call("HGETALL", self._keys(ledger)[0])
        entries = {key.decode(): _amounts(text.partition(b"|")[2]) for key, text in found.items()}
        return Ledger(entries=entries, totals=tuple(map(sum, zip(*entries.values(), strict=True))))

    async def restore(
        self, ledger: str, entry: str, amounts: Amounts | None, *, unless_dropped: bool = False
    ) -> None:
        """Enter or remove what was entered or removed while the server was away, whatever the limits.

        `unless_dropped`: the server may know better, because another replica has removed it since.
        """
        if amounts is None:
            await self._link.run_now(_DROP, self._keys(ledger), [entry, round(FORGOTTEN_S * 1000)])
        else:
            how = "unless dropped" if unless_dropped else ""
            await self._link.run_now(_RESTORE, self._keys(ledger), [entry, _text(amounts), how])

    def _keys(self, ledger: str) -> list[str]:
        return [self._link.key(kind, ledger) for kind in ("entries", "totals", "dropped")]


def _text(amounts: Amounts) -> str:
    return ",".join(map(str, amounts))


def _amounts(text: bytes) -> Amounts:
    return tuple(map(int, text.split(b",")))
