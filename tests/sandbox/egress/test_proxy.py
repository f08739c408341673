"""The proxy on its own socket, with a resolver of the test's and a real server behind it."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
import pytest_asyncio

from orchard_core.sandbox.egress.policy import Address, EgressPolicy, is_public
from orchard_core.sandbox.egress.proxy import EgressProxy
from orchard_core.sandbox.unix_socket import short_name
from orchard_core.types.sandbox import Network, NetworkMode

_LOOPBACK = ipaddress.ip_address("127.0.0.1")


class Server:
    """Tells each request's bytes back, once."""

    port = 0

    def __init__(self) -> None:
        self.seen: list[bytes] = []

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        data = await reader.read(65536)
        self.seen.append(data)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
        await writer.drain()
        writer.close()


@pytest_asyncio.fixture
async def server() -> AsyncIterator[Server]:
    made = Server()
    listener = await asyncio.start_server(made.handle, "127.0.0.1", 0)
    made.port = listener.sockets[0].getsockname()[1]
    yield made
    listener.close()


class Names:
    """A name service whose answers a test scripts; the last one stays."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def __call__(self, host: str, port: int) -> Sequence[Address]:
        self.asked += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if not answer:
            raise OSError(f"no such name: {host}:{port}")
        return [ipaddress.ip_address(answer)]


async def _ask(proxy: EgressProxy, path: Path, request: bytes) -> bytes:
    await proxy.start(path)
    try:
        with short_name(path) as name:
            reader, writer = await asyncio.open_unix_connection(name)
        writer.write(request)
        async with asyncio.timeout(20):
            return await reader.read()
    finally:
        await proxy.close()


def _open(names: Names, permitted: Address | None = None) -> EgressProxy:
    return EgressProxy(
        EgressPolicy(Network(mode=NetworkMode.OPEN)),
        resolve=names,
        permits=lambda address: address == permitted or is_public(address),
    )


async def test_connect_reaches_a_permitted_address(server: Server, tmp_path: Path) -> None:
    request = f"CONNECT good.example:{server.port} HTTP/1.1\r\n\r\nraw bytes".encode()
    answer = await _ask(_open(Names("127.0.0.1"), _LOOPBACK), tmp_path / "s", request)
    assert answer.startswith(b"HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK")
    assert server.seen == [b"raw bytes"]


async def test_an_absolute_request_goes_on_in_origin_form_without_the_proxys_own_headers(
    server: Server, tmp_path: Path
) -> None:
    request = (
        f"GET http://good.example:{server.port}/a?b=c HTTP/1.1\r\nHost: other.example\r\nX-Kept: yes\r\n"
        "Proxy-Authorization: Basic c2VjcmV0\r\nConnection: keep-alive\r\n\r\n"
    ).encode()
    answer = await _ask(_open(Names("127.0.0.1"), _LOOPBACK), tmp_path / "s", request)
    assert answer.endswith(b"hello")
    head = server.seen[0]
    assert head.startswith(b"GET /a?b=c HTTP/1.1\r\nHost: good.example:")
    assert b"X-Kept: yes\r\n" in head
    assert b"Connection: close\r\n" in head
    assert b"c2VjcmV0" not in head
    assert b"other.example" not in head


@pytest.mark.parametrize(
    "target", ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "169.254.169.254", "2130706433"]
)
async def test_addresses_of_the_host_are_refused(server: Server, tmp_path: Path, target: str) -> None:
    proxy = EgressProxy(EgressPolicy(Network(mode=NetworkMode.OPEN)))
    answer = await _ask(proxy, tmp_path / "s", f"CONNECT {target}:{server.port} HTTP/1.1\r\n\r\n".encode())
    assert answer.startswith((b"HTTP/1.1 403", b"HTTP/1.1 502"))
    assert server.seen == []
    assert proxy.refused == 1


async def test_a_name_that_changes_its_mind_gains_nothing(server: Server, tmp_path: Path) -> None:
    """Rebinding: a second answer would be private, but the checked one is used, and asked for once."""
    names = Names("127.0.0.1", "10.0.0.1")
    request = f"CONNECT rebind.example:{server.port} HTTP/1.1\r\n\r\nx".encode()
    answer = await _ask(_open(names, _LOOPBACK), tmp_path / "s", request)
    assert answer.startswith(b"HTTP/1.1 200")
    assert names.asked == 1


async def test_a_public_name_with_a_private_address_is_refused(server: Server, tmp_path: Path) -> None:
    answer = await _ask(
        _open(Names("10.0.0.1")),
        tmp_path / "s",
        f"CONNECT inner.example:{server.port} HTTP/1.1\r\n\r\n".encode(),
    )
    assert answer.startswith(b"HTTP/1.1 403")
    assert b"inner.example has no public address" in answer


async def test_an_unlisted_name_is_refused_without_being_resolved(tmp_path: Path) -> None:
    names = Names("8.8.8.8")
    policy = EgressPolicy(Network(mode=NetworkMode.ALLOW_LIST, allow=("example.net",)))
    answer = await _ask(
        EgressProxy(policy, resolve=names),
        tmp_path / "s",
        b"CONNECT secret-data.evil.example:443 HTTP/1.1\r\n\r\n",
    )
    assert b"403" in answer
    assert b"not on this sandbox's allow-list" in answer
    assert names.asked == 0, "a look-up would carry data out"


@pytest.mark.parametrize(
    "hidden",
    [
        b"X: a\nProxy-Authorization: Basic c2VjcmV0",
        b"X: a\n\nGET /inner HTTP/1.1\nHost: inner.example",
        b"X: a\rTransfer-Encoding: chunked",
        b"X: a\0b",
        b"X: a\r\n folded: yes",
        b"\tfolded: yes",
        b": nameless",
        b"no header at all",
        b"Transfer-Encoding : chunked",
    ],
)
async def test_a_head_that_servers_may_read_differently_goes_nowhere(
    server: Server, tmp_path: Path, hidden: bytes
) -> None:
    for first in (b"GET http://good.example:%d/ HTTP/1.1", b"CONNECT good.example:%d HTTP/1.1"):
        request = first % server.port + b"\r\n" + hidden + b"\r\n\r\n"
        answer = await _ask(_open(Names("127.0.0.1"), _LOOPBACK), tmp_path / "s", request)
        assert answer.startswith(b"HTTP/1.1 400")
    target = b"GET http://good.example:%d/a\nX:b HTTP/1.1\r\n\r\n" % server.port
    assert (await _ask(_open(Names("127.0.0.1"), _LOOPBACK), tmp_path / "s", target)).startswith(
        b"HTTP/1.1 400"
    )
    assert server.seen == []


async def test_a_name_that_cannot_be_resolved_is_said_so(tmp_path: Path) -> None:
    answer = await _ask(_open(Names("")), tmp_path / "s", b"CONNECT none.example:443 HTTP/1.1\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 502")
    assert b"cannot be resolved" in answer


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"400"),
        (b"CONNECT nowhere HTTP/1.1\r\n\r\n", b"400"),
        (b"CONNECT x:99999 HTTP/1.1\r\n\r\n", b"400"),
        (b"GET ftp://x/ HTTP/1.1\r\n\r\n", b"400"),
        (b"GET http:///x HTTP/1.1\r\n\r\n", b"400"),
        (b"\x16\x03\x01 garbage\r\n\r\n", b"400"),
        (b"GET http://x/ HTTP/1.1\r\nA: " + b"a" * 200_000 + b"\r\n\r\n", b"431"),
    ],
)
async def test_what_is_no_proxy_request_gets_an_answer(
    tmp_path: Path, request_: bytes, status: bytes
) -> None:
    answer = await _ask(_open(Names("8.8.8.8")), tmp_path / "s", request_)
    assert answer.startswith(b"HTTP/1.1 " + status)
