"""Where an agent listens, and how to get a connection to it."""

from __future__ import annotations

import asyncio
import os
import socket
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from orchard_core.errors import ConfigError

if TYPE_CHECKING:
    from ssl import SSLContext

_UNIX_PATH_MAX = 107
_BUFFER = 1 << 20
_PORTS = {"http": 80, "https": 443}

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentAddress:
    """A Unix socket's path, or a host and port; with a `prefix`, a service that leads to an agent."""

    path: str = ""
    """Absolute path of a Unix socket; empty for TCP."""
    host: str = ""
    """Host name or address."""
    port: int = 0
    """TCP port."""
    tls: SSLContext | None = field(default=None, compare=False, repr=False)
    """Encrypts the connection; None: plain."""
    prefix: str = ""
    """What stands before the path of every call, without a slash at its end; empty for an agent itself."""

    @classmethod
    def parse(cls, url: str, *, ca_file: str = "") -> AgentAddress:
        """Read `unix:PATH`, `http://HOST:PORT`, or `http(s)://HOST[:PORT]/PREFIX` of a service. `ca_file` is
        a PEM file of authorities to trust besides the system's. Raises ConfigError for anything else."""
        if url.startswith("unix:/"):
            return cls(path=url.removeprefix("unix:"))
        parts = urlsplit(url)
        prefix = parts.path.rstrip("/")
        known = parts.scheme in _PORTS and not parts.query and not parts.username
        if known and parts.hostname and (prefix or (parts.port and parts.scheme == "http")):
            tls = tls_context(ca_file) if parts.scheme == "https" else None
            port = parts.port or _PORTS[parts.scheme]
            return cls(host=parts.hostname, port=port, tls=tls, prefix=prefix)
        raise ConfigError(
            f"agent address {url!r} is not understood",
            hint="unix:/PATH, http://HOST:PORT, or http(s)://HOST/PATH of a service",
        )

    @property
    def lent(self) -> bool:
        """An agent's own address in a network, where another may listen by now: no socket of this machine,
        and no service's, which answers for itself."""
        if self.path or self.prefix or self.host == "localhost":
            return False
        try:
            return not ip_address(self.host).is_loopback
        except ValueError:
            return True

    @property
    def url(self) -> str:
        """The form that `parse` reads."""
        return f"unix:{self.path}" if self.path else f"{self._scheme}://{self.authority}{self.prefix}"

    @property
    def authority(self) -> str:
        """HOST:PORT, as the header Host has it; `agent` for a Unix socket."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}" if self.host else "agent"

    @property
    def _scheme(self) -> str:
        return "http" if self.tls is None else "https"

    async def connect(self) -> Streams:
        """Open a connection; a socket's path may be longer than the system's limit of 108 bytes."""
        if not self.path:
            return await asyncio.open_connection(self.host, self.port, limit=_BUFFER, ssl=self.tls)
        streams = await self._connect_unix()
        # A piece then goes out in one write: what does not fit is copied, and waited for.
        streams[1].get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)
        return streams

    async def _connect_unix(self) -> Streams:
        if len(os.fsencode(self.path)) <= _UNIX_PATH_MAX:
            return await asyncio.open_unix_connection(self.path, limit=_BUFFER)
        path = Path(self.path)
        directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
        try:
            return await asyncio.open_unix_connection(f"/proc/self/fd/{directory}/{path.name}", limit=_BUFFER)
        finally:
            os.close(directory)


def tls_context(ca_file: str = "") -> SSLContext:
    """What a client trusts: the system's authorities, and those of a PEM file. Raises ConfigError."""
    import ssl  # costs 10 ms, which a sandbox of this machine does not need

    context = ssl.create_default_context()
    if ca_file:
        try:
            context.load_verify_locations(ca_file)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(
                f"no certificate authorities can be read from {ca_file}: {error}",
                hint="give a PEM file of the authority that signed the service's certificate",
            ) from error
    return context
