"""Places for keys: a file, the shared state in memory, and in Redis."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from orchard_env.service.state.contract import SharedState
from orchard_env.service.state.memory import MemoryState
from orchard_env.service.state.open import open_state
from orchard_env.service.tenancy.books import Book, FileBook, SharedBook
from orchard_env.service.tenancy.issuing import create_key
from orchard_env.service.tenancy.key_file import FileKeys
from orchard_env.service.tenancy.keyed import Keys
from orchard_env.service.tenancy.shared_keys import SharedKeys

from ..redis_server import redis_server as redis_server
from ..redis_server import running_redis


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where keys are kept."""

    book: Book
    """For the operator."""
    replica: Callable[[], Keys]
    """For one more replica; not started."""
    at_once: bool
    """Whether a change holds with the next request, or a moment later."""


@pytest.fixture(params=["file", "memory", "redis"])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    """Each of them, with one key of a tenant called first."""
    if request.param == "file":
        path = tmp_path / "keys.json"
        made = Place(book=FileBook(path), replica=lambda: FileKeys(path), at_once=True)
        await create_key(made.book, "first")
        yield made
    elif request.param == "memory":
        yield await _shared(MemoryState())
    else:
        with running_redis() as server:
            state = open_state(server.settings())
            yield await _shared(state)
            await state.close()


async def _shared(state: SharedState) -> Place:
    made = Place(book=SharedBook(state), replica=lambda: SharedKeys(state), at_once=False)
    await create_key(made.book, "first")
    return made
