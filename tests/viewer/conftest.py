"""A viewer of some runs, really served, and a client that it let in."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from orchard_core.viewer.guard import Door
from orchard_core.viewer.serve import serving
from orchard_core.viewer.sources.shelf import Shelf
from orchard_core.viewer.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


class Client:
    """A browser's requests, without a browser."""

    def __init__(self, session: aiohttp.ClientSession, door: Door, shelf: Shelf) -> None:
        self._session = session
        self.door = door
        """What it came in by."""
        self.shelf = shelf
        """What is shown."""
        self.base = door.link.split("/?")[0]
        """The viewer's address."""

    async def ask(self, path: str, *, method: str = "GET", **headers: str) -> Answer:
        from yarl import URL

        names = {name.replace("_", "-"): value for name, value in headers.items()}
        address = URL(self.base + path, encoded=True)
        async with self._session.request(method, address, headers=names, allow_redirects=False) as answer:
            kept = {name.lower(): value for name, value in answer.headers.items()}
            return Answer(status=answer.status, headers=kept, body=await answer.read())

    async def page(self, path: str) -> str:
        """The text of a page that must be there."""
        answer = await self.ask(path)
        assert answer.status == 200, (path, answer.status, answer.text[:2000])
        return answer.text


Opens = Callable[..., AbstractAsyncContextManager[Client]]


@pytest.fixture
def viewer(tmp_path: Path) -> Opens:
    """Serves runs, matrices and datasets to a client inside a block."""

    @asynccontextmanager
    async def opened(
        *paths: Path, index: bool = False, enter: bool = True, vocabulary: Vocabulary | None = None
    ) -> AsyncIterator[Client]:
        shelf = Shelf.open(_paths(paths))
        jar = aiohttp.CookieJar(unsafe=True)  # cookies of an address are kept, too
        async with (
            serving(shelf, index=index, cache=tmp_path / "cache", vocabulary=vocabulary) as door,
            aiohttp.ClientSession(cookie_jar=jar) as session,
        ):
            client = Client(session, door, shelf)
            if enter:
                answer = await client.ask(door.link.removeprefix(client.base))
                assert answer.status == 303
            yield client

    return opened


def _paths(paths: Sequence[Path]) -> list[Path]:
    return list(paths)
