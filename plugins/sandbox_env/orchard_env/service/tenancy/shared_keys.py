"""Tenants and keys in the shared state. Every replica keeps a copy, so that no request waits for the store.

Records are only ever added or changed, and of two copies of one the larger revision is true. So when the
store forgets them, the replicas write back what they know, and no revoked key comes back by that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from pydantic import ValidationError

from orchard_core import Record, ServiceOverloaded
from orchard_env.service.ending import ended
from orchard_env.service.state.contract import SharedState
from orchard_env.service.state.values import StateUnavailable, Table
from orchard_env.service.tenancy.records import Access, AccessIndex, KeyRecord, TenantRecord

_LOG = logging.getLogger("orchard.service.tenancy")
TABLE = "access"
"""Rows `key:ID` and `tenant:NAME`."""
_LOOK_S = 1.0
"""Between looks for what no event told of."""

_AWAY = "the shared store is away"
_EMPTY = (
    "the shared store holds none; it is new, and `orchard env keys create` makes one, or it has forgotten "
    "them, and another replica writes them back"
)

_Kind = TypeVar("_Kind", KeyRecord, TenantRecord)


async def _nobody(version: int) -> None:
    """Nobody waits for versions."""


class SharedKeys:
    """This replica's copy."""

    def __init__(self, state: SharedState, *, loaded: Callable[[int], Awaitable[None]] = _nobody) -> None:
        """`loaded` is awaited with the table's version each time it was read anew."""
        self._state = state
        self._loaded = loaded
        self._rows: Mapping[str, KeyRecord | TenantRecord] = {}
        self._index: AccessIndex | None = None
        self._why = _AWAY
        self._version = -1
        self._tasks: list[asyncio.Task[None]] = []
        self._reading = asyncio.Lock()

    @property
    def index(self) -> AccessIndex:
        """All of it, as this replica knows it. Raises ServiceOverloaded until there is any to be known."""
        if self._index is None:
            raise ServiceOverloaded(
                f"this replica has not read its keys yet: {self._why}",
                retry_after_s=2.0,
                hint="come again, or ask another replica",
            )
        return self._index

    @property
    def fault(self) -> str:
        """Why there are no keys."""
        return "" if self._index is not None else f"the keys were never read: {self._why}"

    @property
    def version(self) -> int:
        """The table's version that the copy is of; -1 before it was read."""
        return self._version

    async def start(self) -> None:
        """Read it, and keep it up to date; when the store is away, as soon as it is back."""
        await self._look()
        self._tasks = [asyncio.create_task(self._listen()), asyncio.create_task(self._poll())]

    async def close(self) -> None:
        """Keep it up to date no more."""
        await ended(*self._tasks)

    async def _listen(self) -> None:
        async for _ in self._state.topics.listen(f"table:{TABLE}"):
            await self._look()

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_S)
            await self._look()

    async def _look(self) -> None:
        try:
            async with self._reading:
                if await self._state.tables.version(TABLE) != self._version:
                    await self._read()
        except StateUnavailable as error:
            _LOG.debug("keys were not looked at: %s", error.message)

    async def _read(self) -> None:
        table = await self._state.tables.read(TABLE)
        if not table.version and not self._rows:
            self._why = _EMPTY  # whose keys are not here must not be told that they are wrong
            return
        found = _records(table)
        lost = [name for name, record in self._rows.items() if _older(found.get(name), record)]
        self._rows = {**found, **{name: self._rows[name] for name in lost}}
        self._index = AccessIndex(_of(self._rows, TenantRecord), _of(self._rows, KeyRecord))
        self._version = table.version
        await self._loaded(table.version)
        rows = {name: self._rows[name].model_dump_json().encode() for name in lost}
        await self._state.tables.put(TABLE, rows)


def row_of(record: KeyRecord | TenantRecord) -> str:
    """The name of its row."""
    return f"key:{record.id}" if isinstance(record, KeyRecord) else f"tenant:{record.name}"


def access_of(table: Table) -> Access:
    """A table as tenants and keys."""
    rows = _records(table)
    return Access(tenants=tuple(_of(rows, TenantRecord)), keys=tuple(_of(rows, KeyRecord)))


def _records(table: Table) -> dict[str, KeyRecord | TenantRecord]:
    return {name: record for name, row in table.rows.items() if (record := _parsed(name, row))}


def _parsed(name: str, row: bytes) -> KeyRecord | TenantRecord | None:
    kind: type[KeyRecord] | type[TenantRecord] = KeyRecord if name.startswith("key:") else TenantRecord
    try:
        return kind.model_validate_json(row)
    except ValidationError as error:
        _LOG.error("the row %s of the shared keys is broken and counts for nothing: %s", name, error.title)
        return None


def _older(found: KeyRecord | TenantRecord | None, known: KeyRecord | TenantRecord) -> bool:
    return found is None or found.revision < known.revision


def _of(rows: Mapping[str, Record], kind: type[_Kind]) -> list[_Kind]:
    return [record for record in rows.values() if isinstance(record, kind)]
