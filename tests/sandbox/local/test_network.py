"""Network policies from inside: the proxy is the only way out, and it leads to public addresses alone."""

from __future__ import annotations

import asyncio
import json

import pytest

from orchard_core.sandbox.local.provider import LocalProvider
from orchard_core.types.sandbox import Network, NetworkMode, SandboxSpec

_FETCH = """
import sys, urllib.request
for url in sys.argv[1:]:
    try: print(urllib.request.urlopen(url, timeout=20).status)
    except Exception as error: print(error)
"""


@pytest.mark.parametrize("mode", [NetworkMode.OPEN, NetworkMode.ALLOW_LIST])
async def test_the_proxy_refuses_the_hosts_own_services(provider: LocalProvider, mode: NetworkMode) -> None:
    seen: list[bytes] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.read(1000))
        writer.close()

    server = await asyncio.start_server(handle, "0.0.0.0", 0)
    port = server.sockets[0].getsockname()[1]
    spec = SandboxSpec(network=Network(mode=mode, allow=(f"localhost:{port}", f"127.0.0.1:{port}")))
    async with await provider.create(spec) as sandbox:
        urls = [
            f"http://{host}:{port}/" for host in ("localhost.", "127.0.0.1", "10.0.0.1", "169.254.169.254")
        ]
        env = {"NO_PROXY": "", "no_proxy": ""}
        told = await sandbox.exec(["python3", "-c", _FETCH, *urls], env=env, timeout=90)
        assert told.stdout_text.count("HTTP Error 403") == 4, told.text
        direct = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)"
        assert not (await sandbox.exec(["python3", "-c", direct, "127.0.0.1", str(port)])).ok
    server.close()
    assert seen == []


async def test_the_way_out_survives_a_reset(provider: LocalProvider) -> None:
    async with await provider.create(SandboxSpec(network=Network(mode=NetworkMode.OPEN))) as sandbox:
        for _ in range(2):
            told = await sandbox.exec(["python3", "-c", _FETCH, "http://10.0.0.1/"], timeout=60)
            assert "HTTP Error 403" in told.text
            await sandbox.reset_processes()


async def test_without_a_network_no_proxy_is_offered(provider: LocalProvider) -> None:
    async with await provider.create(SandboxSpec()) as sandbox:
        assert b"proxy" not in (await sandbox.exec("env")).stdout.lower()
        links = "import json, socket; print(json.dumps([name for _, name in socket.if_nameindex()]))"
        seen = await sandbox.exec(["python3", "-c", links])
        assert json.loads(seen.stdout)[0] == "lo"
        assert not (await sandbox.exec("cat /proc/net/route | grep -v Iface | grep .")).ok


async def test_the_hosts_network_is_there_when_named(provider: LocalProvider) -> None:
    async def handle(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"host")
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with await provider.create(SandboxSpec(network=Network(mode=NetworkMode.HOST))) as sandbox:
        code = f"import socket; print(socket.create_connection(('127.0.0.1', {port})).recv(9).decode())"
        assert (await sandbox.exec(["python3", "-c", code])).stdout == b"host\n"
    server.close()
