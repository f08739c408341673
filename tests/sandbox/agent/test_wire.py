"""What a hostile agent may answer: everything is bounded, and everything has a typed error."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from orchard_core.errors import FileError, SandboxConnectionLost
from orchard_core.sandbox.agent import AgentClient
from orchard_core.sandbox.agent.wire import ANSWER_MAX
from orchard_core.types.sandbox import AgentEndpoint

_CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
_OK = b"HTTP/1.1 200 OK\r\n"


class Liar:
    """Answers every call with the same bytes, and then its last piece without end when there is one."""

    def __init__(self) -> None:
        self.answer = b""
        self.endless = b""
        self.calls = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.calls += 1
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(self.answer)
            await writer.drain()
            while self.endless:
                writer.write(self.endless)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()


@pytest.fixture
def liar() -> Liar:
    return Liar()


@pytest.fixture
async def client(liar: Liar) -> AsyncIterator[AgentClient]:
    server = await asyncio.start_server(liar.handle, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with AgentClient(
        AgentEndpoint(url=f"http://127.0.0.1:{port}", token="x" * 16, sandbox_id="x")
    ) as made:
        yield made
    server.close()


@pytest.mark.parametrize(
    "answer",
    [
        _CHUNKED + b"no number\r\n",
        _CHUNKED + b"-5\r\n",
        _CHUNKED + b"1" * (8 << 20),
        _CHUNKED + b"0\r\n" + b"name: value\r\n" * 1000,
        _OK + b"Content-Length: many\r\n\r\n",
        _OK + b"Content-Length: -5\r\n\r\nhello",
        _OK + b"Content-Length: 100\r\n\r\nhello",
        _OK + b"a" * (8 << 20),
    ],
    ids=[
        "a chunk without a number",
        "a negative chunk",
        "a line without end",
        "trailers without end",
        "a length without a number",
        "a negative length",
        "a cut answer",
        "a head without end",
    ],
)
async def test_an_answer_that_is_none_is_a_lost_connection(
    client: AgentClient, liar: Liar, answer: bytes
) -> None:
    liar.answer = answer
    with pytest.raises(SandboxConnectionLost):
        await client.health()


async def test_a_listing_without_end_is_refused(client: AgentClient, liar: Liar) -> None:
    line = b'{"name":"x","path":"/x","type":"file","size":1,"mode":420,"mtime":0}\n' * 10_000
    liar.answer, liar.endless = _CHUNKED, b"%x\r\n%s\r\n" % (len(line), line)
    with pytest.raises(FileError, match=str(ANSWER_MAX)):
        await client.list("/")
    assert liar.calls == 1, "it is not asked for again"


@pytest.mark.parametrize("body", [b"{}", b"[]", b"null", b"garbage", b'{"state":"exited"}', b'{"runs":[1]}'])
async def test_an_answer_of_something_else_is_a_lost_connection(
    client: AgentClient, liar: Liar, body: bytes
) -> None:
    liar.answer = _OK + b"Connection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    for call in (client.health, client.metrics, client.mint_token, client.runs, client.process("x").told):
        with pytest.raises(SandboxConnectionLost):
            await call()
    with pytest.raises(SandboxConnectionLost):
        _ = [piece async for piece in client.process("x").stdout()]


async def test_a_listing_of_something_else_is_a_lost_connection(client: AgentClient, liar: Liar) -> None:
    for body in (b"{}", b"[]", b"garbage", b'{"name":1,"path":2,"type":[],"mode":"x","mtime":0}'):
        liar.answer = _OK + b"Connection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
        with pytest.raises(SandboxConnectionLost):
            await client.list("/")
