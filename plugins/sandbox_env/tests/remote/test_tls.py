"""A service behind TLS, for the SDK and for the provider."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from orchard_env import AsyncSandboxClient
from orchard_env.remote.config import RemoteConfig
from orchard_env.remote.provider import RemoteProvider

from orchard_core import ConfigError, ModelEndpoint, SandboxConnectionLost, SandboxSpec

from ..service.running import parts_of, running
from .reachable import reachable_provider


@dataclass(frozen=True)
class Secured:
    """A service's other address."""

    url: str
    """https."""
    ca_file: str
    """Whom to trust."""


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Of localhost, signed by itself: certificate and key."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl to make a certificate with: install it")
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        [
            "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
            "-subj", "/CN=localhost",
            "-addext", "subjectAltName=DNS:localhost", "-keyout", "key.pem", "-out", "cert.pem",
        ],
        cwd=folder,
        check=True,
        capture_output=True,
    )  # fmt: skip
    return folder / "cert.pem", folder / "key.pem"


@pytest.fixture
async def secured(certificate: tuple[Path, Path]) -> AsyncIterator[Secured]:
    """What ends TLS before the service, as a load balancer does."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*map(str, certificate))
    with running(lambda: parts_of(reachable_provider())) as service:
        port = int(service.url.rpartition(":")[2])

        async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                await asyncio.wait(
                    {
                        asyncio.create_task(_copy(reader, inner_writer)),
                        asyncio.create_task(_copy(inner_reader, writer)),
                    },
                    return_when=asyncio.FIRST_COMPLETED,
                )
            finally:
                inner_writer.transport.abort()
                writer.transport.abort()

        server = await asyncio.start_server(relay, "127.0.0.1", 0, ssl=context)
        outside = server.sockets[0].getsockname()[1]
        yield Secured(url=f"https://localhost:{outside}", ca_file=str(certificate[0]))
        server.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while piece := await reader.read(1 << 16):
            writer.write(piece)
            await writer.drain()
    except OSError:
        return


async def test_every_call_of_the_provider_passes_tls(secured: Secured) -> None:
    provider = RemoteProvider(RemoteConfig(url=secured.url, ca_file=secured.ca_file, direct="never"))
    async with await provider.create(SandboxSpec()) as sandbox:
        assert (await sandbox.exec("cat", stdin=b"x" * 1_000_000)).stdout_size == 1_000_000
        inside = await sandbox.expose_model(
            ModelEndpoint(base_url="http://127.0.0.1:9/v1", api_key="k", model="m")
        )
        assert inside.base_url.startswith("http://127.0.0.1:")  # a tunnel, by WebSocket
    await provider.close()


async def test_the_sdk_trusts_whom_it_is_told_to(secured: Secured) -> None:
    async with AsyncSandboxClient(secured.url) as client:
        with pytest.raises(SandboxConnectionLost, match="certificate"):
            await client.http.json("GET", "/health")
    async with AsyncSandboxClient(secured.url, ca_file=secured.ca_file) as client:
        assert (await client.health())["status"] in ("ok", "healthy")
        async with await client.create_sandbox("host") as sandbox:
            assert (await sandbox.exec("echo secured")).stdout == "secured\n"


async def test_a_file_that_names_nobody_to_trust_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("nothing")
    provider = RemoteProvider(RemoteConfig(url="https://localhost:1", ca_file=str(tmp_path / "ca.pem")))
    with pytest.raises(ConfigError, match=r"ca\.pem"):
        await provider.capabilities()
