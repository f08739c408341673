"""What is under way ends soon after the key that it was begun with; what others do goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
from orchard_env.service.services import Services
from orchard_env.service.state.memory import MemoryState
from orchard_env.service.tenancy.books import FileBook
from orchard_env.service.tenancy.issuing import Issued, create_key, revoke_key, rotate_key
from orchard_env.service.tenancy.key_file import FileKeys
from orchard_env.service.tenancy.keyed import KeyedTenancy

from orchard_core import load_provider

from ..running import GENEROUS_S, Running, parts_of, running

SLEEP = {"command": "sleep 1000", "cmd": ["sleep", "1000"]}


@dataclass(frozen=True, kw_only=True)
class Keyed:
    """A service with keys, and a sandbox of the tenant alice."""

    service: Running
    book: FileBook
    box: str

    async def issued(self) -> Issued:
        """One more key of alice's."""
        return await create_key(self.book, "alice")

    @asynccontextmanager
    async def session(self, key: Issued) -> AsyncIterator[aiohttp.ClientSession]:
        """Calls with it."""
        headers = {"X-API-Key": key.text}
        patience = aiohttp.ClientTimeout(total=GENEROUS_S)
        async with aiohttp.ClientSession(self.service.url, headers=headers, timeout=patience) as session:
            yield session


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keyed]:
    path = tmp_path_factory.mktemp("keys") / "keys.json"
    book = FileBook(path)
    issued = asyncio.run(create_key(book, "alice"))

    def parts() -> Services:
        tenancy = KeyedTenancy(FileKeys(path), MemoryState())
        return parts_of(load_provider("process"), tenancy=tenancy, rights_s=0.02)

    with running(parts, key=issued.text) as service, service.client() as client:
        made = client.post("/v2/sandboxes", params={"wait": GENEROUS_S}, json={}).raise_for_status()
        yield Keyed(service=service, book=book, box=made.json()["id"])


Ending = Callable[[FileBook, str], Awaitable[object]]


async def rotated(book: FileBook, key: str) -> object:
    return await rotate_key(book, key, overlap_s=0.0)


@pytest.mark.parametrize("end", [revoke_key, rotated], ids=["revoked", "rotated"])
async def test_events_of_a_command_end_and_do_not_begin_again(keyed: Keyed, end: Ending) -> None:
    key = await keyed.issued()
    path = f"/v2/sandboxes/{keyed.box}/exec/stream"
    async with keyed.session(key) as session:
        async with session.post(path, json={"command": "sleep 1000"}) as answer:
            assert (await answer.content.readline()).startswith(b"id:")
            await end(keyed.book, key.record.id)
            with suppress(aiohttp.ClientPayloadError):
                assert b"exit" not in await answer.content.read()
        async with session.post(path, json={"command": "true"}) as answer:
            assert (answer.status, (await answer.json())["error"]) == (403, "KeyRefused")


@pytest.mark.parametrize("path", ["/v2/sandboxes/{}/exec/stream", "/sandboxes/{}/exec/pty",
                                  "/v2/sandboxes/{}/tunnel", "/v2/sandboxes/{}/agent/v1/raw"])  # fmt: skip
async def test_sockets_are_closed_and_say_why_while_those_of_other_keys_stay(keyed: Keyed, path: str) -> None:
    path = path.format(keyed.box)
    key, other = await keyed.issued(), await keyed.issued()
    async with (
        asyncio.timeout(GENEROUS_S),
        keyed.session(key) as session,
        keyed.session(other) as others,
        session.ws_connect(path) as socket,
        others.ws_connect(path) as stays,
    ):
        for one in (socket, stays):
            if "exec" in path:
                await one.send_json({"type": "init", "cmd": ["sleep", "1000"]} if "pty" in path else SLEEP_V2)
            assert (await one.receive()).type is aiohttp.WSMsgType.TEXT
        began = await running_in(others, keyed.box)
        await revoke_key(keyed.book, key.record.id)
        while (message := await socket.receive()).type is not aiohttp.WSMsgType.CLOSE:
            assert message.type is not aiohttp.WSMsgType.CLOSED
        assert (message.data, "was revoked" in str(message.extra)) == (1008, True)
        if "pty" in path:
            while await running_in(others, keyed.box) == began:
                await asyncio.sleep(0.02)  # a terminal's program ends with it, as when its client leaves
        await stays.ping()
        with pytest.raises(TimeoutError):
            await stays.receive(timeout=0.1)
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await session.ws_connect(path)
        assert refused.value.status == 403


async def running_in(session: aiohttp.ClientSession, box: str) -> int:
    """How many programs run."""
    async with session.get(f"/v2/sandboxes/{box}/execs") as answer:
        return sum(run["state"] == "running" for run in (await answer.json())["execs"])


SLEEP_V2 = {"command": "sleep 1000"}


async def test_who_waits_for_an_answer_is_refused_in_words(keyed: Keyed) -> None:
    key, other = await keyed.issued(), await keyed.issued()
    path = f"/v2/sandboxes/{keyed.box}/execs"
    async with keyed.session(key) as session, keyed.session(other) as others:
        async with session.post(path, json={"id": "waits", **SLEEP_V2}) as began:
            assert began.status == 201
        waiting = asyncio.create_task(session.get(f"{path}/waits", params={"wait": "250"}))
        await revoke_key(keyed.book, key.record.id)
        async with await waiting as answer:
            told = await answer.json()
        assert (answer.status, told["error"]) == (403, "KeyRefused")
        assert "was revoked" in told["message"]
        async with others.get(f"{path}/waits") as goes_on:
            assert (await goes_on.json())["state"] == "running", "the command is the tenant's, not the key's"
        async with others.post(f"{path}/waits/signal", json={"signal": 9}) as ended:
            assert ended.status == 200


@pytest.mark.parametrize("path", ["files?path=/tmp/{}", "agent/v1/files?path=/tmp/{}"])
async def test_an_upload_under_way_writes_nothing(keyed: Keyed, tmp_path: Path, path: str) -> None:
    key, other = await keyed.issued(), await keyed.issued()
    path = f"/v2/sandboxes/{keyed.box}/" + path.format(tmp_path.name)
    revoked = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield b"x" * (1 << 20)
        await revoke_key(keyed.book, key.record.id)
        await revoked.wait()

    async with keyed.session(key) as session, keyed.session(other) as others:
        async with session.put(path, data=body()) as answer:
            told = await answer.json()
        revoked.set()
        assert (answer.status, told["error"]) == (403, "KeyRefused")
        async with others.get(path) as missing:
            assert missing.status == 404
