"""How much of requests' bodies is held in memory at once."""

from __future__ import annotations

from collections import Counter

from orchard_core import ServiceOverloaded

_SHARE = 0.5
_AGAIN_S = 2.0


class Bodies:
    """Bytes of bodies that are read whole, of all requests under way. One tenant may hold half of them, and
    where nothing is held any one body may be read."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._sum = 0
        self._by: Counter[str] = Counter()

    def more(self, tenant: str, size: int) -> None:
        """So many bytes came. Raises ServiceOverloaded; then they do not count."""
        full = self._sum + size > self._most or self._by[tenant] + size > self._most * _SHARE
        if full and self._by[tenant]:
            raise ServiceOverloaded(
                f"the service holds {self._sum >> 20} MiB of requests' bodies, and no more of this one",
                retry_after_s=_AGAIN_S,
                hint="send fewer large bodies at once, or stream files over /v2, of which nothing is held",
            )
        self._sum += size
        self._by[tenant] += size

    def less(self, tenant: str, size: int) -> None:
        """They are held no more."""
        self._sum -= size
        self._by[tenant] -= size
        if not self._by[tenant]:
            del self._by[tenant]


class HeldBody:
    """One request's."""

    __slots__ = ("_bodies", "_size", "_tenant")

    def __init__(self, bodies: Bodies) -> None:
        self._bodies = bodies
        self._tenant = ""
        self._size = 0

    def more(self, tenant: str, size: int) -> None:
        """See Bodies."""
        self._bodies.more(tenant, size)
        self._tenant = tenant
        self._size += size

    def done(self) -> None:
        """The request is over."""
        if self._size:
            self._bodies.less(self._tenant, self._size)
            self._size = 0
