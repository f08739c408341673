"""Where an agent listens, and how to get a connection to it."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from orchard_core.errors import ConfigError

_UNIX_PATH_MAX = 107
_BUFFER = 1 << 20

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentAddress:
    """A Unix socket's path, or a host and port."""

    path: str = ""
    """Absolute path of a Unix socket; empty for TCP."""
    host: str = ""
    """Host name or address."""
    port: int = 0
    """TCP port."""

    @classmethod
    def parse(cls, url: str) -> AgentAddress:
        """Read `unix:PATH` or `http://HOST:PORT`. Raises ConfigError for anything else."""
        if url.startswith("unix:/"):
            return cls(path=url.removeprefix("unix:"))
        parts = urlsplit(url)
        if parts.scheme == "http" and parts.hostname and parts.port and parts.path in ("", "/"):
            return cls(host=parts.hostname, port=parts.port)
        raise ConfigError(f"agent address {url!r} is not understood", hint="unix:/PATH or http://HOST:PORT")

    @property
    def url(self) -> str:
        """The form that `parse` reads."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"unix:{self.path}" if self.path else f"http://{host}:{self.port}"

    async def connect(self) -> Streams:
        """Open a connection; a socket's path may be longer than the system's limit of 108 bytes."""
        if not self.path:
            return await asyncio.open_connection(self.host, self.port, limit=_BUFFER)
        if len(os.fsencode(self.path)) <= _UNIX_PATH_MAX:
            return await asyncio.open_unix_connection(self.path, limit=_BUFFER)
        path = Path(self.path)
        directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
        try:
            return await asyncio.open_unix_connection(f"/proc/self/fd/{directory}/{path.name}", limit=_BUFFER)
        finally:
            os.close(directory)
