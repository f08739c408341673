"""A service that runs, from its parts to its end."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from orchard_core import AdoptingProvider, ConfigError, SandboxProvider, SandboxUnavailable
from orchard_env.service.app import build_app
from orchard_env.service.listener import Server, listening, server
from orchard_env.service.log import SERVICE
from orchard_env.service.room import raise_file_limit
from orchard_env.service.services import Services
from orchard_env.service.tls.files import TlsFiles, TlsSettings
from orchard_env.service.tls.serving import use_tls

_POLL_S = 0.02
_ASK_S = 5.0
"""To read the list of a large cluster takes longer, and nothing that is asked of the service waits for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where to serve."""

    host: str = "127.0.0.1"
    """The address to bind."""
    port: int = 8000
    """0: any that is free."""
    certificate: str | None = None
    """PEM file; with it the service speaks HTTPS."""
    key: str | None = None
    """PEM file of its key."""
    client_ca: str | None = None
    """PEM file of who vouches for clients; None: they need no certificate."""


async def serve(services: Services, address: Address, *, ready: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT, then drain. `ready` is told the URL once. Raises ConfigError for an
    address that cannot be had, SandboxUnavailable when the provider can do nothing."""
    tls = _tls(address)
    sock = _bind(address)
    try:
        asked = await _check_able(services.fleet.provider)
    except BaseException:
        sock.close()
        raise
    raise_file_limit()
    settings = services.settings
    running = server(build_app(services), drain_s=settings.drain_s, connections=settings.connections)
    running.on_end = services.fleet.begin_drain
    if tls is not None:
        use_tls(running, tls)
        tls.start()
    # Tools that rotate logs send it, and it ends whoever does not listen for it.
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, tls.reload if tls else _nothing)
    serving = asyncio.ensure_future(_run(running, sock))
    try:
        while not running.started and not serving.done():  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(_POLL_S)
        if running.started:
            ready(url_of(sock, address))
        await serving
    finally:
        sock.close()
        if asked is not None:
            asked.cancel()
        asyncio.get_running_loop().remove_signal_handler(signal.SIGHUP)
        if tls is not None:
            await tls.close()
    if not running.started:
        raise SandboxUnavailable(
            f"the service did not start: the provider {services.fleet.provider.name} cannot work here",
            hint="the log above says why; `orchard plugins` and the provider's page say what it needs",
        )


async def _check_able(provider: SandboxProvider) -> asyncio.Task[None] | None:
    """Raises what keeps it from working at all. A cluster that does not answer now may do so later: who still
    waits for it is given back."""
    await provider.capabilities()
    if not isinstance(provider, AdoptingProvider):
        return None
    asking = asyncio.create_task(_ask(provider))
    await asyncio.wait((asking,), timeout=_ASK_S)
    if asking.done():
        asking.result()
    return asking


async def _ask(provider: AdoptingProvider) -> None:
    try:
        await provider.standing()
    except SandboxUnavailable as error:
        SERVICE.warning("the service starts all the same: %s", error.message)


async def _run(running: Server, sock: socket.socket) -> None:
    with suppress(SystemExit):  # what uvicorn makes of a start that failed; it would end the loop at once
        await running.serve(sockets=[sock])


def _tls(address: Address) -> TlsFiles | None:
    if address.certificate is None or address.key is None:
        return None
    return TlsFiles(
        TlsSettings(
            certificate=Path(address.certificate),
            key=Path(address.key),
            client_ca=None if address.client_ca is None else Path(address.client_ca),
        )
    )


def _nothing() -> None:
    """The audit log finds out by itself that its file was moved away."""


def _bind(address: Address) -> socket.socket:
    try:
        return listening(address.host, address.port)
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {address.host} port {address.port}: {error.strerror or error}",
            hint="choose another --port (0 takes any that is free), or end the program that holds this one",
        ) from error


def url_of(sock: socket.socket, address: Address) -> str:
    """How a client on this machine writes it."""
    host, port, *_ = sock.getsockname()
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if address.certificate else 'http'}://{shown}:{port}"


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address."""
    return host in ("localhost", "::1") or host.startswith("127.")
