"""TLS under uvicorn."""

from __future__ import annotations

import uvicorn

from orchard_env.service.tls.files import TlsFiles


def use_tls(server: uvicorn.Server, files: TlsFiles) -> None:
    """Have a server that has not started yet speak TLS, with what the files hold at each new connection."""
    if not server.config.loaded:
        server.config.load()
    server.config.ssl = files.context
