"""Certificate, key and client authority as files that are read anew when they change."""

from __future__ import annotations

import asyncio
import logging
import ssl
from pathlib import Path
from typing import Any

from orchard_core import ConfigError, Record
from orchard_env.service.ending import ended

_LOG = logging.getLogger("orchard.service.tls")


class TlsSettings(Record):
    """Files in PEM."""

    certificate: Path
    """The server's certificate, followed by those that vouch for it."""
    key: Path
    """Its key; must not be readable by others."""
    client_ca: Path | None = None
    """Who must vouch for clients; None: clients need no certificate, only their API key."""


class TlsFiles:
    """The server's side of TLS. New connections use what the files held when they were read last; those that
    are open go on with what they began with."""

    def __init__(self, settings: TlsSettings) -> None:
        """Raises ConfigError when a file is missing, broken, or does not fit the others."""
        self._settings = settings
        self._stamp = self._look()
        self._current = _context(settings)
        self._watching: asyncio.Task[None] | None = None
        self.fault = ""
        """Why the files as they are now cannot be used; empty when they can."""
        self.context = _context(settings)
        """For the listener; it hands each new connection on to what was read last."""
        self.context.sni_callback = self._choose

    def _choose(self, connection: ssl.SSLObject | ssl.SSLSocket, name: str | None, context: Any) -> None:
        connection.context = self._current

    def reload(self) -> bool:
        """Read the files anew; false, and all stays as it was, when they cannot be used."""
        self._stamp = self._look()
        try:
            self._current = _context(self._settings)
        except ConfigError as error:
            self.fault = error.message
            _LOG.error("%s; the certificate that was read last stays in use", error.message)
            return False
        self.fault = ""
        _LOG.info("the certificate was read anew from %s", self._settings.certificate)
        return True

    def start(self, every_s: float = 10.0) -> None:
        """Look from now on whether a file has changed."""
        self._watching = asyncio.create_task(self._watch(every_s), name="tls-files")

    async def close(self) -> None:
        """Look no more."""
        await ended(self._watching)

    async def _watch(self, every_s: float) -> None:
        while True:
            await asyncio.sleep(every_s)
            # A pair that is being replaced file by file fails, stays unread, and is tried again.
            if self._look() != self._stamp or self.fault:
                self.reload()

    def _look(self) -> tuple[object, ...]:
        files = (self._settings.certificate, self._settings.key, self._settings.client_ca)
        return tuple(_stamp(file) for file in files if file is not None)


def _context(settings: TlsSettings) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    what = f"certificate {settings.certificate} with key {settings.key}"
    try:
        # A passphrase would be asked for on the terminal, and hold the service up for ever.
        context.load_cert_chain(settings.certificate, settings.key, password=_no_passphrase)
        if settings.client_ca is not None:
            what = f"client authority {settings.client_ca}"
            context.load_verify_locations(settings.client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"TLS cannot use the {what}: {_in_words(error)}",
            hint="give PEM files that belong together, the key without a passphrase",
        ) from error
    return context


def _no_passphrase() -> str:
    raise ValueError("the key has a passphrase")


def _in_words(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return (error.reason or str(error)).replace("_", " ").lower()
    return getattr(error, "strerror", None) or str(error)


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size
