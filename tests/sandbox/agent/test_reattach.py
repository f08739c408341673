"""A connection that drops. What was running still runs, once, and its result still arrives."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from orchard_core.errors import SandboxConnectionLost
from orchard_core.sandbox.agent import AgentClient


class FlakyProxy:
    """Passes bytes to a Unix socket, and cuts connections after so many seconds, or before their answer."""

    def __init__(self, target: str) -> None:
        self._target = target
        self.cuts_left = 0
        self.after_s = 0.1
        self.connections = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        inner_reader, inner_writer = await asyncio.open_unix_connection(self._target)
        copies = [
            asyncio.create_task(self._copy(reader, inner_writer)),
            asyncio.create_task(self._copy(inner_reader, writer)),
        ]
        if self.cuts_left > 0:
            self.cuts_left -= 1
            await asyncio.sleep(self.after_s)
            for copy in copies:
                copy.cancel()
        await asyncio.gather(*copies, return_exceptions=True)
        writer.transport.abort()
        inner_writer.transport.abort()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()


@pytest.fixture
async def proxy(agent: AgentClient) -> AsyncIterator[tuple[FlakyProxy, AgentClient]]:
    flaky = FlakyProxy(agent.endpoint.url.removeprefix("unix:"))
    server = await asyncio.start_server(flaky.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with AgentClient(replace(agent.endpoint, url=f"http://127.0.0.1:{port}")) as client:
        yield flaky, client
    server.close()


Proxy = tuple[FlakyProxy, AgentClient]


async def test_a_dropped_call_attaches_again(proxy: Proxy, tmp_path: Path) -> None:
    flaky, client = proxy
    flaky.cuts_left = 3
    result = await client.exec("echo ran >> count; sleep 0.8; echo done", cwd=str(tmp_path))
    assert result.stdout == b"done\n"
    assert flaky.connections >= 4
    assert (tmp_path / "count").read_text() == "ran\n"


async def test_streamed_input_arrives_once(proxy: Proxy) -> None:
    flaky, client = proxy
    flaky.cuts_left, flaky.after_s = 2, 0.02
    data = os.urandom(3_000_000)
    result = await client.exec(["sha256sum"], stdin=data)
    plain = await client.exec(["sha256sum"], stdin=data)
    assert result.stdout == plain.stdout


async def test_an_output_stream_goes_on_where_it_was(proxy: Proxy) -> None:
    flaky, client = proxy
    process = await client.start("for i in $(seq 1 100); do echo $i; sleep 0.01; done")
    client.link.drop_idle()
    flaky.cuts_left = 3
    out = b"".join([piece async for piece in process.stdout()])
    assert out.split() == [b"%d" % n for n in range(1, 101)]


async def test_it_gives_up_after_a_bound(proxy: Proxy) -> None:
    flaky, client = proxy
    flaky.cuts_left, flaky.after_s = 1000, 0.0
    with pytest.raises(SandboxConnectionLost):
        await asyncio.wait_for(client.exec("sleep 3"), 20)


async def test_an_idle_connection_that_was_closed_is_replaced(proxy: Proxy) -> None:
    flaky, client = proxy
    flaky.cuts_left = 1
    assert (await client.exec(["echo", "one"])).stdout == b"one\n"
    await asyncio.sleep(0.3)
    assert (await client.exec(["echo", "two"])).stdout == b"two\n"
