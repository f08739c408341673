"""`open` and `allow-list` behind the namespace's policy, between network namespaces.

A real agent runs in a namespace that the policy shuts; its driver, in another one, reaches the agent's port
alone and holds the way out.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchard_core import agent_binary

from .test_policy import CONFIG, OTHER_PORT, PODS, Network
from .test_policy import network as network

NAMES = {
    "public.example": "1.2.3.4", "public6.example": "2606:4700::1234", "other.example": "1.2.3.4",
    "neighbour.example": "10.213.2.2", "metadata.example": "169.254.169.254", "loop.example": "127.0.0.1",
    "loop6.example": "::1", "mapped.example": "::ffff:127.0.0.1",
}  # fmt: skip
"""What the driver's resolver says; the sandbox has none."""

_DRIVE = """
import asyncio, json, sys
from orchard_core import AgentClient, AgentEndpoint, Network, Outlet
async def main(url, network, code, targets):
    outlet = Outlet(Network.model_validate(json.loads(network)))
    await outlet.open()
    async with AgentClient(AgentEndpoint(url=url, token="t" * 32, sandbox_id="guest")) as client:
        await client.wait_ready(60)
        await outlet.connect(client)
        done = await client.exec([sys.executable, "-S", "-c", code, targets], timeout=120)
        print(done.stdout_text, done.stderr_text, file=sys.stderr if done.exit_code else sys.stdout)
    await outlet.close()
asyncio.run(main(*sys.argv[1:]))
"""
_TRY = """
import ipaddress, json, socket, sys
def direct(host, port):
    ipaddress.ip_address(host)  # who could be asked for a name is another machine's program here
    with socket.create_connection((host, port), 5) as there:
        return there.recv(9) == b"here"
def proxied(host, port):
    with socket.create_connection(("127.0.0.1", 3128), 5) as proxy:
        name = f"[{host}]" if ":" in host else host
        proxy.settimeout(60)
        proxy.sendall(f"CONNECT {name}:{port} HTTP/1.1\\r\\n\\r\\n".encode())
        said = b""
        while piece := proxy.recv(999):
            said += piece
        return said.endswith(b"\\r\\n\\r\\nhere")
def reached(how, *target):
    try: return how(*target)
    except (OSError, ValueError): return False
targets = json.loads(sys.argv[1])
print(json.dumps([[host for host, port in targets if reached(how, host, port)] for how in (direct, proxied)]))
"""


@pytest.fixture
def guest(network: Network, tmp_path: Path) -> Iterator[str]:
    """The URL of an agent in a namespace that the policy shuts."""
    token = tmp_path / "token"
    token.write_text("t" * 32)
    words = [str(agent_binary()), "--listen", f"tcp:[::]:{CONFIG.agent_port}", "--sandbox-id", "guest"]
    words += ["--token-file", str(token), "--spool", str(tmp_path)]
    agent = subprocess.Popen(["ip", "netns", "exec", network.name("guest"), *words])
    yield f"http://{PODS['guest'].address}:{CONFIG.agent_port}"
    agent.terminate()
    agent.wait()


def driven(network: Network, url: str, tmp_path: Path, **asked: Any) -> tuple[set[str], set[str]]:
    """The hosts that a program inside reaches by itself, and through the driver."""
    hosts = tmp_path / "hosts"
    hosts.write_text("".join(f"{address} {name}\n" for name, address in NAMES.items()))
    addresses = [pod.at(version) for pod in PODS.values() for version in (4, 6) if pod.name != "guest"]
    targets = json.dumps(
        [(host, OTHER_PORT) for host in (*NAMES, *addresses, "127.0.0.1", "::1", "0x7f000001")]
    )
    # `ip netns exec` has mounts of its own, so that nobody else sees these names.
    inside = 'mount --bind "$0" /etc/hosts && exec "$@"'
    words = [
        "ip",
        "netns",
        "exec",
        network.name("driver"),
        "sh",
        "-c",
        inside,
        str(hosts),
        sys.executable,
        "-c",
    ]
    told = network.run(*words, _DRIVE, url, json.dumps(asked), _TRY, targets)
    direct, proxied = json.loads(told)
    return set(direct), set(proxied)


def test_open_leads_to_public_addresses_alone(network: Network, guest: str, tmp_path: Path) -> None:
    """Of the driver's own networks nothing is reached, whatever a name says, and nothing past the driver."""
    direct, proxied = driven(network, guest, tmp_path, mode="open")
    assert direct == set()
    public = {name for name, address in NAMES.items() if address in ("1.2.3.4", "2606:4700::1234")}
    assert proxied == {*public, "1.2.3.4", "2606:4700::1234"}


def test_an_allow_list_leads_to_its_names_alone(network: Network, guest: str, tmp_path: Path) -> None:
    """Not to their addresses by another name, and to no private address though its name is on the list."""
    allow = [f"{name}:{OTHER_PORT}" for name in ("public.example", "public6.example", "neighbour.example")]
    direct, proxied = driven(network, guest, tmp_path, mode="allow-list", allow=allow)
    assert direct == set()
    assert proxied == {"public.example", "public6.example"}
