"""What a container reaches: nothing, or what its policy says, through the driver's proxy."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from orchard_sandbox_container.config import ContainerConfig
from orchard_sandbox_container.provider import ContainerProvider

from orchard_core import Sandbox, SandboxSpec

if TYPE_CHECKING:
    from .conftest import Podman


pytestmark = pytest.mark.usefixtures("python_image")


def spec(network: object, **fields: Any) -> SandboxSpec:
    return SandboxSpec.model_validate({"image": "oci:python", "network": network, **fields})


ASK = """
import http.client, os, sys, urllib.parse
proxy = urllib.parse.urlsplit(os.environ["http_proxy"])
asked = http.client.HTTPConnection(proxy.hostname, proxy.port, timeout=30)
asked.request("GET", sys.argv[1])
print(asked.getresponse().status)
"""


async def answer(sandbox: Sandbox, url: str) -> str:
    """The status that the proxy gives for an address; empty when nobody listens there."""
    return (await sandbox.exec(["python3", "-c", ASK, url], timeout=60)).stdout_text.strip()


async def test_without_a_network_there_is_only_loopback(provider: ContainerProvider) -> None:
    async with await provider.create(spec("none")) as sandbox:
        assert (await sandbox.exec("cd /sys/class/net; echo *; env | grep -ci proxy")).stdout == b"lo\n0\n"


async def test_an_allow_list_refuses_everything_else(provider: ContainerProvider) -> None:
    network = {"mode": "allow-list", "allow": ["allowed.invalid:80"]}
    async with await provider.create(spec(network)) as sandbox:
        assert (await sandbox.exec("cd /sys/class/net; echo *")).stdout == b"lo\n"
        assert await answer(sandbox, "http://other.invalid/") == "403"
        assert await answer(sandbox, "http://allowed.invalid/") == "502", "asked for, and it does not exist"
        await sandbox.reset_processes()
        assert await answer(sandbox, "http://other.invalid/") == "403", "a new agent has the way out too"


async def test_open_refuses_what_is_not_public(provider: ContainerProvider) -> None:
    async with await provider.create(spec("open")) as sandbox:
        for address in ("127.0.0.2", "10.0.0.1", "169.254.169.254", "192.168.0.1", "[::1]"):
            assert await answer(sandbox, f"http://{address}/") == "403", address


_NAMES = """
import socket
for name in ("example.org", "secret.example.org", "metadata.google.internal"):
    try: raise SystemExit(f"{name} is {socket.getaddrinfo(name, 80)}")
    except OSError: pass
for server in ("127.0.0.53", "10.88.0.1", "8.8.8.8", "169.254.169.253", "2001:4860:4860::8888"):
    with socket.socket(socket.AF_INET6 if ":" in server else socket.AF_INET, socket.SOCK_DGRAM) as peer:
        peer.settimeout(5)
        try: peer.connect((server, 53)); peer.send(b"secret"); peer.recv(1)
        except OSError: continue
        raise SystemExit(f"{server} answers")
"""


@pytest.mark.parametrize("network", ["none", "open"])
async def test_no_name_is_resolved_inside(provider: ContainerProvider, network: str) -> None:
    """A query for a name carries data, whatever the answer is: there must be nobody to ask."""
    async with await provider.create(spec(network)) as sandbox:
        told = await sandbox.exec(["python3", "-c", _NAMES], timeout=120)
        assert (told.exit_code, told.stdout + told.stderr) == (0, b"")


_LEAVE = """
import ctypes, socket, time
libc = ctypes.CDLL(None)
for place in ("/dev/shm", "/tmp", "/var/tmp"): open(f"{place}/mark", "w").close()
abstract = socket.socket(socket.AF_UNIX); abstract.bind(b"\\0mark"); abstract.listen()
port = socket.create_server(("", 4711))
libc.shmget(0x0a11ce, 4096, 0o1666)
print("left", flush=True); time.sleep(600)
"""
_FIND = """
import ctypes, os, socket
found = [place for place in ("/dev/shm", "/tmp", "/var/tmp") if os.path.exists(f"{place}/mark")]
for family, at in ((socket.AF_UNIX, b"\\0mark"), (socket.AF_INET, ("127.0.0.1", 4711))):
    try: socket.socket(family).connect(at); found.append(str(at))
    except OSError: pass
if ctypes.CDLL(None).shmget(0x0a11ce, 0, 0) >= 0: found.append("shm")
print(len(found))
"""


async def test_a_neighbour_leaves_nothing_that_is_found(provider: ContainerProvider) -> None:
    """No shared directory, memory, abstract socket or port."""
    async with await provider.create(spec("none")) as one, await provider.create(spec("none")) as two:
        leaving = await one.start(["python3", "-c", _LEAVE])
        async for piece in leaving.stdout():
            assert piece == b"left\n"
            break
        for sandbox, found in ((one, b"6\n"), (two, b"0\n")):
            assert (await sandbox.exec(["python3", "-c", _FIND], timeout=60)).stdout == found


@pytest.mark.slow
async def test_the_way_out_goes_on_under_an_adopter(
    podman: Podman, python_image: str, tmp_path: Path
) -> None:
    config = ContainerConfig(engine=podman.socket, state_dir=str(tmp_path))
    one, two = ContainerProvider(config), ContainerProvider(config)
    made = await one.create(spec({"mode": "allow-list", "allow": ["allowed.invalid:80"]}))
    await one.release()
    async with await two.adopt(made.id) as sandbox:
        for _ in range(100):  # until the new driver holds the port
            if await answer(sandbox, "http://other.invalid/") == "403":
                break
            await asyncio.sleep(0.1)
        else:
            pytest.fail("the adopter's way out never opened")
    await two.close()


async def test_the_hosts_network_is_had_by_name_only(provider: ContainerProvider) -> None:
    async with await provider.create(spec("host")) as sandbox:
        here = Path("/sys/class/net")
        seen = (await sandbox.exec("ls /sys/class/net")).stdout_text.split()
        assert "lo" in seen
        assert set(seen) & {path.name for path in here.iterdir()}
