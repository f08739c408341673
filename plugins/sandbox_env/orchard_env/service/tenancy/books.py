"""Where an operator's changes to tenants and keys are written."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

import orjson

from orchard_core import SandboxUnavailable
from orchard_env.service.state.contract import SharedState
from orchard_env.service.tenancy.key_file import edit_key_file, read_key_file
from orchard_env.service.tenancy.records import Access, KeyRecord, TenantRecord
from orchard_env.service.tenancy.shared_keys import TABLE, access_of, row_of

_EDIT_S, _TRY_S = 10.0, 0.05
NOTE_FIELD = "access"
"""In a replica's note: the version of the shared keys that it goes by."""

_Row = TypeVar("_Row", KeyRecord, TenantRecord)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How far a change has come."""

    replicas: int
    """Live replicas that go by it."""
    of: int
    """Live replicas."""


class Book(Protocol):
    """A place for tenants and keys, for one editor at a time."""

    async def read(self) -> Access:
        """All of it."""

    async def change(self, change: Callable[[Access], _Row]) -> _Row:
        """Add the record that `change` makes of what there is, or put it in place of the one of its name, as
        one step; gives it back."""

    async def spread(self, within_s: float) -> Spread | None:
        """Wait until every live replica goes by the last change, at most so long; None: each does with its
        next request."""


class FileBook:
    """A key file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def read(self) -> Access:
        """See Book. Raises ConfigError."""
        return read_key_file(self._path)

    async def change(self, change: Callable[[Access], _Row]) -> _Row:
        """See Book. Raises ConfigError."""
        made: list[_Row] = []

        def edit(access: Access) -> Access:
            record = change(access)
            made.append(record)
            return access.with_key(record) if isinstance(record, KeyRecord) else access.with_tenant(record)

        edit_key_file(self._path, edit)
        return made[0]

    async def spread(self, within_s: float) -> Spread | None:
        """See Book: whoever reads the file looks at it with every request."""
        return None


class SharedBook:
    """The shared state."""

    def __init__(self, state: SharedState) -> None:
        self._state = state

    async def read(self) -> Access:
        """See Book. Raises StateUnavailable."""
        return access_of(await self._state.tables.read(TABLE))

    async def change(self, change: Callable[[Access], _Row]) -> _Row:
        """See Book. Raises StateUnavailable, and SandboxUnavailable when others edit without end."""
        async with self._alone():
            record = change(await self.read())
            await self._state.tables.put(TABLE, {row_of(record): record.model_dump_json().encode()})
        return record

    async def spread(self, within_s: float) -> Spread | None:
        """See Book. Raises StateUnavailable."""
        wanted = await self._state.tables.version(TABLE)
        until = time.monotonic() + within_s
        while True:
            versions = [_version(note) for note in (await self._state.replicas.alive()).values()]
            know = sum(version >= wanted for version in versions)
            if know == len(versions) or time.monotonic() > until:
                return Spread(replicas=know, of=len(versions))
            await asyncio.sleep(_TRY_S)

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        editor = secrets.token_hex(8)
        until = time.monotonic() + 2 * _EDIT_S
        while (lease := await self._state.leases.take("access-edit", editor, _EDIT_S)) is None:
            if time.monotonic() > until:
                raise SandboxUnavailable("somebody else is changing keys all the time", hint="try again")
            await asyncio.sleep(_TRY_S)
        try:
            yield
        finally:
            await self._state.leases.drop(lease)


def _version(note: bytes) -> int:
    try:
        found = orjson.loads(note).get(NOTE_FIELD, -1)
    except (ValueError, AttributeError):
        return -1
    return found if isinstance(found, int) else -1
