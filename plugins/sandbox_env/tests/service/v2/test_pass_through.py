"""The agent's own protocol through the service: the same answers, and no more than the list allows."""

from __future__ import annotations

import hashlib
import json
import socket as sockets
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import httpx
import pytest

from orchard_core import AgentClient, AgentEndpoint, FileMissing, LocalAddress

from ..running import Running


@pytest.fixture
def at(sandbox: str) -> str:
    """The path of the module's sandbox's agent."""
    return f"/v2/sandboxes/{sandbox}/agent"


def endpoint(service: Running, sandbox: str) -> AgentEndpoint:
    return AgentEndpoint(url=f"{service.url}/v2/sandboxes/{sandbox}/agent", token="", sandbox_id=sandbox)


async def test_the_agents_client_works_unchanged_through_the_service(service: Running, sandbox: str) -> None:
    async with AgentClient(endpoint(service, sandbox)) as agent:
        assert (await agent.health()).sandbox == sandbox
        ran = await agent.exec("cat; echo $0 >&2", stdin=b"in" * 300_000)
        assert (ran.stdout_size, ran.exit_code) == (600_000, 0)
        await agent.write("/workspace/through", b"bytes")
        assert await agent.read_bytes("/workspace/through") == b"bytes"
        with pytest.raises(FileMissing):
            await agent.read_bytes("/nope")


async def test_a_port_inside_is_reached_both_ways_with_half_closed_connections(
    service: Running, sandbox: str
) -> None:
    program = (
        "import socket; s = socket.create_server(('127.0.0.1', 8765)); print('up', flush=True)\n"
        "c, _ = s.accept()\n"
        "data = b''\nwhile p := c.recv(65536): data += p\nc.sendall(data[::-1]); c.close()"
    )
    async with AgentClient(endpoint(service, sandbox)) as agent:
        process = await agent.start(["python3", "-c", program])
        async for piece in process.stdout():
            assert piece == b"up\n"
            break
        address = await agent.forward(8765)
        with sockets.create_connection((address.host, address.port)) as connection:
            connection.setblocking(False)
            import asyncio

            reader, writer = await asyncio.open_connection(sock=connection.dup())
            writer.write(b"abc" * 100_000)
            writer.write_eof()
            assert await reader.read() == (b"abc" * 100_000)[::-1]
            writer.close()


async def test_a_program_inside_reaches_the_drivers_target_by_a_tunnel(
    service: Running, sandbox: str
) -> None:
    parts = urlsplit(service.url)
    assert parts.hostname
    assert parts.port
    async with AgentClient(endpoint(service, sandbox)) as agent:
        tunnel = await agent.tunnel(LocalAddress(host=parts.hostname, port=parts.port))
        url = f"http://{tunnel.address.host}:{tunnel.address.port}/health"
        program = f"import urllib.request; print(urllib.request.urlopen({url!r}).status)"
        assert (await agent.exec(["python3", "-c", program])).stdout == b"200\n"


def test_large_files_pass_both_ways_byte_for_byte(client: httpx.Client, at: str) -> None:
    block = bytes(range(256)) * 4096
    digest = hashlib.sha256()

    def pieces() -> Iterator[bytes]:
        for _ in range(64):
            digest.update(block)
            yield block

    path = {"path": "/workspace/large"}
    assert client.put(f"{at}/v1/files", params=path, content=pieces()).json() == {"size": 64 << 20}
    back = hashlib.sha256()
    with client.stream("GET", f"{at}/v1/files", params=path) as answer:
        assert answer.headers["content-length"] == str(64 << 20)
        for piece in answer.iter_bytes():
            back.update(piece)
    assert back.digest() == digest.digest()


def test_a_body_that_is_cut_changes_nothing(client: httpx.Client, service: Running, at: str) -> None:
    path = {"path": "/workspace/cut"}
    client.put(f"{at}/v1/files", params=path, content=b"whole")
    parts = urlsplit(service.url)
    with sockets.create_connection((parts.hostname or "", parts.port or 0)) as raw:
        raw.sendall(
            f"PUT {at}/v1/files?path=/workspace/cut HTTP/1.1\r\n"
            "Host: x\r\nContent-Length: 1000000\r\n\r\n".encode()
        )
        raw.sendall(b"x" * 500_000)
    assert client.get(f"{at}/v1/files", params=path).content == b"whole"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/v1/tokens", 404),
        ("DELETE", "/v1/tokens", 404),
        ("POST", "/v1/shutdown", 404),
        ("POST", "/v1/renew", 404),
        ("GET", "/v1/exec/..%2f..%2ftokens", 404),
        ("GET", "/v1/exec/../tokens", 404),
        ("GET", "/v1/exec/%2e%2e", 404),
        ("GET", "/v1/../v1/tokens", 404),
        ("GET", "//v1/health", 404),
        ("GET", "/v1/health/", 404),
        ("GET", "/V1/health", 404),
        ("GET", "", 404),
        ("POST", "/v1/health", 405),
        ("HEAD", "/v1/files", 405),
        ("CONNECT", "/v1/files", None),
        ("GET", "/v1/forward/22", 404),
        ("POST", "/v1/tunnel", 404),
    ],
)
def test_what_is_not_on_the_list_does_not_pass(
    client: httpx.Client, at: str, method: str, path: str, status: int | None
) -> None:
    raw = httpx.URL(f"{client.base_url}".rstrip("/") + at).copy_with(raw_path=(at + path).encode())
    answer = client.request(method, raw)
    assert 400 <= answer.status_code < 500
    assert status in (None, answer.status_code)


async def test_a_socket_tells_a_refusal_in_its_first_frame(service: Running, at: str) -> None:
    async with aiohttp.ClientSession(service.url) as session:
        for path, status in (("/v1/tokens", 404), ("/v1/forward/9", 502), ("/v1/exec/none/pty", 404)):
            async with session.ws_connect(at + path) as socket:
                said = json.loads((await socket.receive()).data)
                assert said["status"] == status
                assert json.loads(said["body"])["message"]
                assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE


def test_a_file_of_the_host_is_not_read_by_any_path(client: httpx.Client, at: str) -> None:
    with tempfile.NamedTemporaryFile() as secret:
        Path(secret.name).write_text("secret")
        answer = client.get(f"{at}/v1/files", params={"path": secret.name})
        assert answer.status_code == 404
