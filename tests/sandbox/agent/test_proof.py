"""A token is told only to who shows that it knows it: an address in a network may be a stranger's by now."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest

from orchard_core.errors import AgentRefused, NotAnAgent, SandboxConnectionLost, SandboxError
from orchard_core.sandbox.agent import AgentClient
from orchard_core.sandbox.agent.address import AgentAddress
from orchard_core.types.sandbox import AgentEndpoint

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
TOKEN = "a-token-of-somebody"


@asynccontextmanager
async def listening(handle: Handler) -> AsyncIterator[str]:
    """The URL of who answers by `handle`. It is this machine's own, written so that nobody sees it."""
    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield f"http://127.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


class Relay:
    """Leads to an agent; hears what is said on the way there."""

    def __init__(self, to: AgentEndpoint) -> None:
        self._to = AgentAddress.parse(to.url)
        self.heard: list[bytearray] = []

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heard.append(heard := bytearray())
        inner, into = await self._to.connect()
        back = asyncio.create_task(_carry(inner, writer, bytearray()))
        await _carry(reader, into, heard)
        await back


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, heard: bytearray) -> None:
    with suppress(OSError):
        while piece := await reader.read(65536):
            heard += piece
            writer.write(piece)
            await writer.drain()
    writer.close()


@pytest.mark.parametrize(
    ("url", "lent"),
    [
        ("unix:/run/agent", False),
        ("http://127.0.0.1:7777", False),
        ("http://[::1]:7777", False),
        ("http://localhost:7777", False),
        ("http://10.0.0.1:80/v2/sandboxes/x/agent", False),
        ("http://10.0.0.1:7777", True),
        ("http://[fd00::1]:7777", True),
        ("http://pod.example:7777", True),
    ],
)
def test_addresses_of_this_machine_and_of_services_are_nobody_elses(url: str, lent: bool) -> None:
    assert AgentAddress.parse(url).lent is lent


async def test_one_question_a_connection_and_everything_works_behind_it(agent: AgentClient) -> None:
    relay = Relay(agent.endpoint)
    async with listening(relay.handle) as url:
        client = AgentClient(replace(agent.endpoint, url=url))
        for _ in range(3):
            assert (await client.exec(["echo", "on"])).stdout == b"on\n"
        assert [bytes(heard).count(b"/v1/proof") for heard in relay.heard] == [1]
        minted = await client.mint_token(60.0)
        worker = AgentClient(minted)
        assert (await worker.exec(["echo", "too"])).stdout == b"too\n"
        await worker.close()
        await client.close()
    for heard in relay.heard:
        asked, _, rest = bytes(heard).partition(b"\r\n\r\n")
        assert asked.startswith(b"GET /v1/proof?")
        assert b"Bearer" not in asked
        assert b"Bearer" in rest


async def test_a_token_that_has_ended_and_anothers_id_are_told_as_such(agent: AgentClient) -> None:
    relay = Relay(agent.endpoint)
    async with listening(relay.handle) as url:
        there = replace(agent.endpoint, url=url)
        for wrong in (replace(there, token="x" * 32), replace(there, sandbox_id="other")):
            client = AgentClient(wrong)
            with pytest.raises(AgentRefused):
                await client.exec(["true"])
            await client.close()
    assert all(b"Bearer" not in heard for heard in relay.heard)


def _whole(status: str, body: bytes) -> bytes:
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status.encode(), len(body), body)


STRANGERS = {
    "agrees to anything": _whole("200 OK", b"{}"),
    "says nothing in many words": _whole("200 OK", b"0" * 64),
    "has no end": _whole("200 OK", b"0" * 100_000),
    "refuses": _whole("401 Unauthorized", b'{"code": "unauthorized", "message": "no"}'),
    "is another's agent": _whole("421 Misdirected", b'{"code": "wrong_sandbox", "message": "no"}'),
    "says that all is over": _whole("401 No", b'{"code": "shutting_down", "message": "over"}'),
    "has no room": _whole("503 No", b'{"code": "lane_full", "message": "later"}'),
    "leads elsewhere": b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\n\r\n",
    "upgrades": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
    "speaks no HTTP": b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
    "hangs up": b"",
}


@pytest.mark.parametrize("said", STRANGERS.values(), ids=STRANGERS)
async def test_no_stranger_is_told_the_token_or_believed(said: bytes) -> None:
    heard = bytearray()

    async def stranger(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, OSError):
            while True:
                heard.extend(await reader.readuntil(b"\r\n\r\n"))
                writer.write(said)
                if not said:
                    break
                await writer.drain()
        writer.close()

    async with listening(stranger) as url:
        client = AgentClient(AgentEndpoint(url=url, token=TOKEN, sandbox_id="box"))
        calls: tuple[Callable[[], Awaitable[object]], ...] = (
            lambda: client.link.call("GET", "/v1/health"),
            lambda: client.link.call("POST", "/v1/exec", body=b"x"),
            client.link.connect,
            lambda: client.link.upgrade("GET", "/v1/forward/80", None, "raw"),
        )
        for call in calls:
            with pytest.raises(SandboxError) as caught:
                await call()
            assert type(caught.value) in (AgentRefused, NotAnAgent, SandboxConnectionLost)
        await client.close()
    assert b"/v1/proof" in heard
    assert TOKEN.encode() not in heard
    assert b"Bearer" not in heard


async def test_an_answer_to_another_question_proves_nothing(agent: AgentClient) -> None:
    """A stranger who once heard a good answer says it again."""
    key = hashlib.sha256(agent.endpoint.token.encode()).digest()
    sent = bytearray()

    async def stranger(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        sent.extend(head)
        query = parse_qs(urlsplit(head.split(b" ")[1].decode()).query)
        stale = "0" * len(query["nonce"][0])
        proof = hmac.digest(key, b"orchard-agent-proof\0" + stale.encode() + b"\0box", "sha256").hex()
        writer.write(_whole("200 OK", proof.encode()))
        sent.extend(await reader.read(65536))
        writer.close()

    async with listening(stranger) as url:
        client = AgentClient(replace(agent.endpoint, url=url))
        with pytest.raises(AgentRefused, match="does not know its token"):
            await client.health()
        await client.close()
    assert agent.endpoint.token.encode() not in sent


async def test_a_client_with_another_way_takes_it_past_a_stranger(agent: AgentClient) -> None:
    heard = bytearray()

    async def stranger(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.extend(await reader.readuntil(b"\r\n\r\n"))
        writer.write(_whole("200 OK", b"f" * 64))
        writer.close()

    async with listening(stranger) as url:
        client = AgentClient(replace(agent.endpoint, url=url), through=agent.endpoint)
        assert (await client.exec(["echo", "on"])).stdout == b"on\n"
        await client.close()
    assert b"Bearer" not in heard
