"""Ports inside, reached from the driver, and the driver's fixed target, reached from inside."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from orchard_core.errors import PortRefused, SandboxConnectionLost, SandboxError
from orchard_core.sandbox.agent import AgentClient, Forward
from orchard_core.types.sandbox import LocalAddress

Launch = Callable[..., Awaitable[AgentClient]]
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(65536):
        writer.write(piece)
        await writer.drain()
    writer.write(b"|end")
    writer.close()


@pytest.fixture
async def target() -> AsyncIterator[LocalAddress]:
    """A server that sends back what it gets, and marks the end."""
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    yield LocalAddress(host="127.0.0.1", port=server.sockets[0].getsockname()[1])
    server.close()


async def exchange(address: LocalAddress, data: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(address.host, address.port)

    async def send() -> None:
        writer.write(data)
        await writer.drain()
        writer.write_eof()

    sending = asyncio.create_task(send())
    answer = await reader.read(-1)
    await sending
    writer.close()
    return answer


async def answered(address: LocalAddress) -> bytes:
    """Empty also for a connection that was reset."""
    try:
        return await exchange(address, b"x")
    except ConnectionError:
        return b""


async def test_a_forwarded_port_carries_bytes_both_ways(agent: AgentClient, target: LocalAddress) -> None:
    address = await agent.forward(target.port)
    data = os.urandom(5_000_000)
    assert await exchange(address, data) == data + b"|end"
    many = await asyncio.gather(*(exchange(address, b"%d" % n) for n in range(50)))
    assert many == [b"%d|end" % n for n in range(50)]


async def test_a_forward_to_a_silent_port_is_closed(agent: AgentClient) -> None:
    address = await agent.forward(1)
    assert await answered(address) == b""
    with pytest.raises(PortRefused):
        await Forward(agent._link, 1).connect()


async def test_a_tunnel_leads_to_its_one_target(agent: AgentClient, target: LocalAddress) -> None:
    tunnel = await agent.tunnel(target)
    data = os.urandom(5_000_000)
    assert await exchange(tunnel.address, data) == data + b"|end"
    many = await asyncio.gather(*(exchange(tunnel.address, b"%d" % n) for n in range(100)))
    assert many == [b"%d|end" % n for n in range(100)]


async def test_a_tunnel_is_the_way_out_of_a_sandbox_without_network(
    launch: Launch, confine: Callable[..., list[str]], target: LocalAddress
) -> None:
    client = await launch(prefix=confine(), agent="/agent", directory="/sockets")
    tunnel = await client.tunnel(target)
    script = f"exec 3<>/dev/tcp/127.0.0.1/{tunnel.address.port}; echo hello >&3; head -n 1 <&3"
    assert (await client.exec(["/bin/bash", "-c", script], timeout=10)).stdout == b"hello\n"


async def test_a_tunnel_reaches_a_unix_socket(agent: AgentClient, tmp_path: Path) -> None:
    server = await asyncio.start_unix_server(echo, str(tmp_path / "gateway"))
    tunnel = await agent.tunnel(str(tmp_path / "gateway"))
    assert await exchange(tunnel.address, b"hi") == b"hi|end"
    server.close()


async def test_one_slow_stream_does_not_hold_the_others(agent: AgentClient, target: LocalAddress) -> None:
    tunnel = await agent.tunnel(target)
    _, stuck = await asyncio.open_connection(tunnel.address.host, tunnel.address.port)
    stuck.write(b"x" * 20_000_000)  # its echo is never read
    await asyncio.sleep(0.3)
    before = (await agent.metrics()).rss_bytes
    data = os.urandom(1_000_000)
    answer = await asyncio.wait_for(exchange(tunnel.address, data), 10)
    assert hashlib.sha256(answer).digest() == hashlib.sha256(data + b"|end").digest()
    assert before < 30e6
    stuck.transport.abort()


async def test_two_tunnels_stand_side_by_side(agent: AgentClient, target: LocalAddress) -> None:
    first, second = await agent.tunnel(target), await agent.tunnel(target)
    assert first.address != second.address
    await first.close()
    assert not first.alive
    async with asyncio.timeout(30):  # the agent hears of it a moment later
        while (await agent.metrics()).tunnels_open > 1 or await answered(first.address):
            await asyncio.sleep(0.01)
    assert await exchange(second.address, b"x") == b"x|end"


async def test_a_target_that_refuses_resets_the_stream(agent: AgentClient) -> None:
    tunnel = await agent.tunnel(LocalAddress(host="127.0.0.1", port=1))
    assert await answered(tunnel.address) == b""
    assert tunnel.alive


async def test_a_tunnel_listens_on_loopback_only(agent: AgentClient, target: LocalAddress) -> None:
    for listen in ("0.0.0.0:0", "192.0.2.1:80", "localhost:0", "nonsense"):
        with pytest.raises(SandboxError):
            await agent.tunnel(target, listen=listen)
    tunnel = await agent.tunnel(target, listen="127.0.0.1:0")
    with pytest.raises(SandboxError, match="in use"):
        await agent.tunnel(target, listen=f"127.0.0.1:{tunnel.address.port}")


async def test_a_tunnel_ends_with_its_agent(launch: Launch, target: LocalAddress) -> None:
    client = await launch()
    tunnel = await client.tunnel(target)
    await client.shutdown()
    await asyncio.wait_for(tunnel.wait_closed(), 8)
    assert not tunnel.alive


@pytest.mark.parametrize("steps", range(12))
async def test_a_client_that_is_closed_holds_no_port_inside(
    agent: AgentClient, target: LocalAddress, steps: int
) -> None:
    """Closed so many turns of the loop after somebody asked for a tunnel."""
    first = AgentClient(agent.endpoint)
    listen = (await first.tunnel(target)).address
    await first.close()
    closing = AgentClient(agent.endpoint)
    place = f"{listen.host}:{listen.port}"
    asking = asyncio.create_task(until_free(closing, target, place))
    for _ in range(steps):
        await asyncio.sleep(0)
    await closing.close()
    with contextlib.suppress(SandboxConnectionLost):
        await asking
    async with AgentClient(agent.endpoint) as last:
        await until_free(last, target, place)
        assert await answered(listen) == b"x|end"
    with pytest.raises(SandboxConnectionLost, match="is closed"):
        await closing.tunnel(target)
    with pytest.raises(SandboxConnectionLost, match="is closed"):
        await closing.forward(target.port)


async def until_free(client: AgentClient, target: LocalAddress, place: str) -> None:
    """A tunnel from there, as soon as the agent has seen the end of the one before."""
    while True:
        try:
            await client.tunnel(target, listen=place)
        except SandboxConnectionLost:
            raise
        except SandboxError:  # the port is taken
            await asyncio.sleep(0.01)
        else:
            return
