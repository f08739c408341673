"""Sandboxes that a client made and that go when it goes, however this process ends.

Nothing here needs a loop or a thread, since both may be gone by then. A fork()ed child owns nothing of its
parent's. What a killed process leaves behind ends by its life span, or by the heartbeats that stop.
"""

from __future__ import annotations

import atexit
import http.client
import os
import threading
from contextlib import suppress
from urllib.parse import quote, urlsplit

from orchard_env.client.address import ServiceAddress

_ONE_S = 20.0
_AT_ONCE = 16


class OwnedSandboxes:
    """The ids of one client's sandboxes."""

    def __init__(self, address: ServiceAddress) -> None:
        self._address = address
        self._pid = os.getpid()
        self._ids: set[str] = set()
        self._lock = threading.Lock()

    @property
    def ids(self) -> list[str]:
        """Those of this process that were not let go."""
        with self._lock:
            return sorted(self._ids) if os.getpid() == self._pid else []

    def add(self, sandbox_id: str) -> None:
        """It is ours from now on. Said before the service hears of it, so that none is lost in between."""
        with self._lock:
            if os.getpid() != self._pid:  # the parent's stay the parent's
                self._pid, self._ids = os.getpid(), set()
            self._ids.add(sandbox_id)
        _REGISTRY.watch(self)

    def drop(self, sandbox_id: str) -> None:
        """It is gone, or somebody else's matter."""
        with self._lock:
            self._ids.discard(sandbox_id)

    def delete_all(self) -> None:
        """Delete them over plain connections, several at once; what cannot be reached is left to the service.
        Never raises."""
        ids = self.ids
        for start in range(0, len(ids), _AT_ONCE):
            asked = [(one, self._ask(one)) for one in ids[start : start + _AT_ONCE]]
            for sandbox_id, connection in asked:
                if connection is not None and _done(connection):
                    self.drop(sandbox_id)

    def _ask(self, sandbox_id: str) -> http.client.HTTPConnection | None:
        parts = urlsplit(self._address.url)
        connection: http.client.HTTPConnection
        with suppress(OSError, http.client.HTTPException, ValueError):
            tls = self._address.tls()
            if tls is not None:
                connection = http.client.HTTPSConnection(
                    parts.hostname or "", parts.port, timeout=_ONE_S, context=tls
                )
            else:
                connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_ONE_S)
            path = f"{parts.path}/sandboxes/{quote(sandbox_id, safe='')}"
            connection.request("DELETE", path, headers=self._address.headers)
            return connection
        return None


def _done(connection: http.client.HTTPConnection) -> bool:
    try:
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
    return status < 300 or status in (404, 410)


class _Registry:
    """Whose sandboxes are to go at the end of this process."""

    def __init__(self) -> None:
        self._watched: dict[int, OwnedSandboxes] = {}
        self._registered = False

    def watch(self, owned: OwnedSandboxes) -> None:
        if not self._registered:
            self._registered = True
            atexit.register(self._at_exit)
        self._watched[id(owned)] = owned

    def _at_exit(self) -> None:
        for owned in list(self._watched.values()):
            owned.delete_all()

    def abandoned(self, owned: OwnedSandboxes) -> None:
        self._watched.pop(id(owned), None)
        if owned.ids:
            threading.Thread(target=owned.delete_all, daemon=False).start()


_REGISTRY = _Registry()


def abandoned(owned: OwnedSandboxes) -> None:
    """Its client was collected as garbage without being closed; whoever's thread this is does not wait."""
    _REGISTRY.abandoned(owned)
