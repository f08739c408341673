"""A real listener with certificates that are replaced, broken, and asked of clients."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from cryptography import x509
from orchard_env.service.listener import listening, server
from orchard_env.service.tls.files import TlsFiles, TlsSettings
from orchard_env.service.tls.serving import use_tls
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from orchard_core import ConfigError

from .certificates import Authority

REFUSED = (ssl.SSLError, ConnectionError)
"""Which of the two it is hangs on who closes first."""


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@asynccontextmanager
async def listener(files: TlsFiles) -> AsyncIterator[int]:
    """The port of a real server."""
    sock = listening("127.0.0.1", 0)
    running = server(Starlette(routes=[Route("/", lambda _: PlainTextResponse("hello"))]), drain_s=1.0)
    use_tls(running, files)
    serving = asyncio.create_task(running.serve(sockets=[sock]))
    try:
        yield sock.getsockname()[1]
    finally:
        running.should_exit = True
        await serving
        sock.close()


async def asked(port: int, authority: Authority, client: tuple[Path, Path] | None = None) -> str:
    """Ask the server over TLS; gives the serial number of its certificate. Raises one of REFUSED."""

    def ask() -> str:
        context = ssl.create_default_context(cafile=authority.file)
        if client is not None:
            context.load_cert_chain(*client)
        with (
            socket.create_connection(("127.0.0.1", port), timeout=30) as plain,
            context.wrap_socket(plain, server_hostname="127.0.0.1") as secure,
        ):
            secure.sendall(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            answer = b""
            while piece := secure.recv(65536):
                answer += piece
            if not answer.endswith(b"hello"):
                raise ConnectionError(f"the server closed after {answer!r}")
            certificate = secure.getpeercert(binary_form=True)
            assert certificate is not None
            return str(x509.load_der_x509_certificate(certificate).serial_number)

    return await asyncio.to_thread(ask)


def serial(certificate: Path) -> str:
    return str(x509.load_pem_x509_certificate(certificate.read_bytes()).serial_number)


async def test_a_replaced_certificate_serves_new_connections_without_a_restart(authority: Authority) -> None:
    certificate, key = authority.vouch("server")
    files = TlsFiles(TlsSettings(certificate=certificate, key=key))
    files.start(every_s=0.02)
    async with listener(files) as port:
        first = await asked(port, authority)
        assert first == serial(certificate)
        authority.vouch("server")
        async with asyncio.timeout(30):
            while await asked(port, authority) != serial(certificate):
                await asyncio.sleep(0.02)
        assert serial(certificate) != first
    await files.close()


async def test_a_pair_that_does_not_fit_leaves_the_last_good_one_in_use(authority: Authority) -> None:
    certificate, key = authority.vouch("server")
    files = TlsFiles(TlsSettings(certificate=certificate, key=key))
    async with listener(files) as port:
        first = await asked(port, authority)
        key.write_bytes(authority.vouch("other")[1].read_bytes())
        assert not files.reload()
        assert "key values mismatch" in files.fault
        assert await asked(port, authority) == first
        authority.vouch("server")
        assert files.reload()
        assert files.fault == ""
        assert await asked(port, authority) == serial(certificate)


async def test_a_client_needs_a_certificate_of_the_authority_that_was_named(
    authority: Authority, tmp_path: Path
) -> None:
    certificate, key = authority.vouch("server")
    clients, strangers = Authority(tmp_path, "clients"), Authority(tmp_path, "strangers")
    known, stranger = clients.vouch("known"), strangers.vouch("stranger")
    files = TlsFiles(TlsSettings(certificate=certificate, key=key, client_ca=clients.file))
    async with listener(files) as port:
        assert await asked(port, authority, known)
        with pytest.raises(REFUSED):
            await asked(port, authority)
        with pytest.raises(REFUSED):
            await asked(port, authority, stranger)
        # The authority is read anew as well, and the old one counts no more.
        clients.file.write_bytes(strangers.file.read_bytes())
        assert files.reload()
        assert await asked(port, authority, stranger)
        with pytest.raises(REFUSED):
            await asked(port, authority, known)


async def test_what_tls_10_clients_say_is_not_answered(authority: Authority) -> None:
    certificate, key = authority.vouch("server")
    files = TlsFiles(TlsSettings(certificate=certificate, key=key))
    assert files.context.minimum_version == ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize("broken", ["certificate", "key", "client_ca"])
def test_a_file_that_cannot_be_used_is_named_before_anything_starts(
    authority: Authority, tmp_path: Path, broken: str
) -> None:
    certificate, key = authority.vouch("server")
    good = {"certificate": certificate, "key": key, "client_ca": authority.file}
    for content in (b"", b"no certificate", None):
        bad = tmp_path / "bad.pem"
        if content is not None:
            bad.write_bytes(content)
        else:
            bad.unlink()
        with pytest.raises(ConfigError, match=r"bad\.pem"):
            TlsFiles(TlsSettings.model_validate({**good, broken: bad}))


def test_a_key_with_a_passphrase_is_refused_instead_of_asked_for(authority: Authority) -> None:
    certificate, key = authority.vouch("server", passphrase=b"secret")
    with pytest.raises(ConfigError, match="passphrase"):
        TlsFiles(TlsSettings(certificate=certificate, key=key))
