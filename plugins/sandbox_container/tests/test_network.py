"""What a container reaches: nothing, or what its policy says, through the driver's proxy."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio
from orchard_sandbox_container.config import ContainerConfig
from orchard_sandbox_container.provider import ContainerProvider

from orchard_core import Sandbox, SandboxSpec

if TYPE_CHECKING:
    from .conftest import Podman


@pytest_asyncio.fixture
async def provider(podman: Podman, python_image: str, tmp_path: Path) -> AsyncIterator[ContainerProvider]:
    made = ContainerProvider(ContainerConfig(engine=podman.socket, state_dir=str(tmp_path)))
    yield made
    await made.close()


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
