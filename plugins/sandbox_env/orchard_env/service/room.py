"""How many clients may be connected at once: whoever asks for nothing makes room for who comes."""

from __future__ import annotations

import asyncio
import contextlib
import resource
from collections import Counter
from collections.abc import Iterator

from orchard_env.service.faults import TooManyRequests
from orchard_env.service.seams import Tenant

CONNECTIONS_MAX = 16384
"""No service holds more, however many files it may open: each costs memory, too."""
_FILES = 65536
_SHARE = 0.5
_AGAIN_S = 5.0


def raise_file_limit() -> None:
    """Have this process open as many files as its user may, up to what it can make use of."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def connections_max(chosen: int = 0) -> int:
    """What was chosen; for 0, half the files that this process may open: a call may need one to an agent."""
    if chosen:
        return chosen
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return CONNECTIONS_MAX if soft == resource.RLIM_INFINITY else max(16, min(CONNECTIONS_MAX, soft // 2))


class Room:
    """The connections of one server. A full one ends that which has been idle longest, between two requests
    or before the first; with none idle, the one that comes."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: set[asyncio.BaseTransport] = set()
        self._idle: dict[asyncio.BaseTransport, None] = {}

    def came(self, transport: asyncio.Transport) -> None:
        """A client has connected, and has said nothing yet."""
        self._open.add(transport)
        self._idle[transport] = None
        if len(self._open) > self._most:
            oldest = next(iter(self._idle))
            self.left(oldest)
            assert isinstance(oldest, asyncio.Transport)
            oldest.abort()

    def asked(self, transport: asyncio.BaseTransport) -> None:
        """A request's head is whole."""
        self._idle.pop(transport, None)

    def answered(self, transport: asyncio.BaseTransport) -> None:
        """Nothing is under way on it any more."""
        if transport in self._open:
            self._idle[transport] = None

    def left(self, transport: asyncio.BaseTransport) -> None:
        """It is closed."""
        self._open.discard(transport)
        self._idle.pop(transport, None)


class OpenRequests:
    """Requests and sockets under way, by tenant, so that one tenant's do not keep the others out."""

    def __init__(self, connections: int) -> None:
        self._most = max(1, int(connections * _SHARE))
        self._open: Counter[str] = Counter()

    @contextlib.contextmanager
    def one(self, caller: Tenant | None) -> Iterator[None]:
        """For as long as it takes; who administers may hold all, and None, who asks for what is open to
        everybody, is not counted. Raises TooManyRequests."""
        if caller is None or caller.is_admin:
            yield
            return
        tenant = caller.name
        if self._open[tenant] >= self._most:
            raise TooManyRequests(
                f"{self._open[tenant]} requests and sockets of tenant {tenant} are open, and no more may be",
                retry_after_s=_AGAIN_S,
                hint="end some of them; one tenant may hold half of a service's connections",
            )
        self._open[tenant] += 1
        try:
            yield
        finally:
            self._open[tenant] -= 1
            if not self._open[tenant]:
                del self._open[tenant]
