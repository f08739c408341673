"""Leading by a lease in the shared state."""

from __future__ import annotations

from orchard_env.service.state.contract import Leases
from orchard_env.service.state.values import Lease


class LeaseGrip:
    """Honours `Grip`. A claim is one step in the store, so that two replicas that both think they lead never
    both get one."""

    def __init__(self, leases: Leases, name: str) -> None:
        self._leases = leases
        self._name = name

    async def grasp(self, holder: str, ttl_s: float) -> int | None:
        """See Grip."""
        lease = await self._leases.take(self._name, holder, ttl_s)
        return lease.fence if lease else None

    async def let_go(self, holder: str, term: int) -> None:
        """See Grip."""
        await self._leases.drop(self._lease(holder, term))

    async def confirm(self, holder: str, term: int, item: str, ttl_s: float) -> bool:
        """See Grip."""
        return await self._leases.claim(self._lease(holder, term), item, ttl_s)

    def _lease(self, holder: str, term: int) -> Lease:
        return Lease(name=self._name, holder=holder, fence=term)
