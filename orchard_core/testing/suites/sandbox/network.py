"""What a sandbox reaches and how it is reached: nothing, its model, its ports."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

from orchard_core.sandbox.contract import Sandbox
from orchard_core.testing.suites.sandbox.base import SandboxSuiteBase, need_isolation
from orchard_core.testing.suites.sandbox.speaker import get, serve_inside, speak, tiny_server
from orchard_core.types.model import ModelEndpoint
from orchard_core.types.sandbox import Capabilities


class NetworkSuite(SandboxSuiteBase):
    """No network means none; the tunnel leads to one place; forward leads in."""

    async def test_no_network_is_really_none(self, sandbox: Sandbox, able: Capabilities) -> None:
        """The driver's loopback holds its databases: give the sandbox a network of its own."""
        need_isolation(able)
        async with tiny_server() as server:
            assert await get(sandbox, "127.0.0.1", server.port, "/") is None
            assert await get(sandbox, "localhost", server.port, "/") is None
            assert server.seen == []

    async def test_no_network_reaches_no_address_outside(self, sandbox: Sandbox, able: Capabilities) -> None:
        """Without network there is no way to private, metadata or public addresses either."""
        need_isolation(able)
        for host in ("10.0.0.1", "169.254.169.254", "192.0.2.1", "8.8.8.8"):
            assert await speak(sandbox, host, 80, b"x") is None

    async def test_a_model_is_reached_from_inside(self, sandbox: Sandbox) -> None:
        """Harnesses inside have no network: lead a loopback port to their model, path and key kept."""
        async with tiny_server() as server:
            endpoint = ModelEndpoint(base_url=f"{server.url}/v1", api_key="session-key", model="m")
            seen = await sandbox.expose_model(endpoint)
            url = urlsplit(seen.base_url)
            assert (url.scheme, url.path, seen.model) == ("http", "/v1", "m")
            assert url.hostname in ("127.0.0.1", "localhost")
            assert url.port is not None
            answer = await get(sandbox, "127.0.0.1", url.port, "/v1/models", seen.api_key)
            assert answer == b"hello from the driver"
            assert server.seen[0].startswith(b"GET /v1/models HTTP/1.1\r\n")
            assert b"Bearer session-key\r\n" in server.seen[0]

    async def test_a_model_answer_of_a_megabyte_arrives_whole(self, sandbox: Sandbox) -> None:
        """Long answers and images pass the tunnel: its windows must not stall or cut them."""
        body = bytes(range(256)) * 8192
        async with tiny_server(body) as server:
            seen = await sandbox.expose_model(
                ModelEndpoint(base_url=f"{server.url}/v1", api_key="k", model="m")
            )
            port = urlsplit(seen.base_url).port or 0
            answers = await asyncio.gather(*(get(sandbox, "127.0.0.1", port, "/v1/x") for _ in range(4)))
        assert [answer == body for answer in answers] == [True] * 4

    async def test_the_tunnel_leads_to_the_model_and_nothing_else(
        self, sandbox: Sandbox, able: Capabilities
    ) -> None:
        """The tunnel names one target: no request through it may reach another port of the driver."""
        need_isolation(able)
        async with tiny_server() as model, tiny_server() as other:
            seen = await sandbox.expose_model(
                ModelEndpoint(base_url=f"{model.url}/v1", api_key="k", model="m")
            )
            port = urlsplit(seen.base_url).port or 0
            assert await get(sandbox, "127.0.0.1", other.port, "/") is None
            connect = f"CONNECT 127.0.0.1:{other.port} HTTP/1.1\r\nHost: 127.0.0.1:{other.port}\r\n\r\n"
            await speak(sandbox, "127.0.0.1", port, connect.encode())
            absolute = (
                f"GET {other.url}/ HTTP/1.1\r\nHost: 127.0.0.1:{other.port}\r\nConnection: close\r\n\r\n"
            )
            await speak(sandbox, "127.0.0.1", port, absolute.encode())
            assert other.seen == []

    async def test_a_model_that_is_gone_is_an_error_not_a_hang(self, sandbox: Sandbox) -> None:
        """When nobody listens at the target, a caller inside must see its connection end."""
        async with tiny_server() as server:
            gone = ModelEndpoint(base_url=f"{server.url}/v1", api_key="k", model="m")
        seen = await sandbox.expose_model(gone)
        assert not await get(sandbox, "127.0.0.1", urlsplit(seen.base_url).port or 0, "/v1/x")

    async def test_a_port_inside_is_reached_from_outside(self, sandbox: Sandbox) -> None:
        """Browsers and MCP servers run inside: `forward` gives a local address that leads there."""
        port = await serve_inside(sandbox)
        address = await sandbox.forward(port)
        assert address.host in ("127.0.0.1", "::1")
        for word in (b"one", b"two"):
            assert await _say(address.host, address.port, word) == b"from inside: " + word

    async def test_a_forward_to_nobody_ends(self, sandbox: Sandbox) -> None:
        """A port without a listener must end the connection, not hang it."""
        port = await serve_inside(sandbox)
        await sandbox.reset_processes()
        address = await sandbox.forward(port)
        try:
            assert await _say(address.host, address.port, b"anyone?") == b""
        except OSError:
            return

    async def test_a_forward_ends_with_its_sandbox(self, sandbox: Sandbox) -> None:
        """A local port that stays open after close leads the next caller astray."""
        port = await serve_inside(sandbox)
        address = await sandbox.forward(port)
        await sandbox.close()
        try:
            answer = await _say(address.host, address.port, b"late")
        except OSError:
            return
        assert answer == b"", "the address still answers"


async def _say(host: str, port: int, data: bytes) -> bytes:
    async with asyncio.timeout(20):
        reader, writer = await asyncio.open_connection(host, port)
        try:
            writer.write(data)
            await writer.drain()
            return await reader.read()
        finally:
            writer.close()
