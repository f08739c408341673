"""A request ends soon after the key that it came with: what was allowed once is not allowed for ever."""

from __future__ import annotations

import asyncio
from types import TracebackType

from orchard_core import OrchardError
from orchard_env.service.faults import KeyMissing, KeyRefused, ServiceFault
from orchard_env.service.log import SERVICE
from orchard_env.service.seams import Tenancy, Tenant


class Rights:
    """Looks every few seconds whether the keys of requests under way are still good. Each key is looked at
    once however many requests came with it, and with no request nothing is done."""

    def __init__(self, tenancy: Tenancy, *, every_s: float) -> None:
        self._tenancy = tenancy
        self._every_s = every_s
        self._open: set[Held] = set()
        self._looking: asyncio.Task[None] | None = None

    def held(self, key: str | None, tenant: Tenant) -> Held:
        """Around the work of a request: raises KeyRefused in it when its key was revoked, has expired, or is
        for something else by now."""
        return Held(self, key, tenant)

    def begin(self, held: Held) -> None:
        """Look after one more."""
        self._open.add(held)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look_after(), name="rights")

    def end(self, held: Held) -> None:
        """It is done."""
        self._open.discard(held)

    async def _look_after(self) -> None:
        while self._open:
            await asyncio.sleep(self._every_s)
            for key, tenant in {(held.key, held.tenant) for held in self._open}:
                fault = await self._fault(key, tenant)
                if fault is not None:
                    for held in [one for one in self._open if (one.key, one.tenant) == (key, tenant)]:
                        held.cut(fault)

    async def _fault(self, key: str | None, tenant: Tenant) -> ServiceFault | None:
        """Why the key is not good any more; None also while that cannot be known."""
        try:
            now = await self._tenancy.identify(key)
        except (KeyRefused, KeyMissing) as error:
            return error
        except OrchardError as error:
            SERVICE.warning("keys of requests under way were not looked at: %s", error.message)
            return None
        if now == tenant:
            return None
        return KeyRefused("what the API key may do was changed meanwhile", hint="ask again")


class Held:
    """One request."""

    __slots__ = ("_fault", "_limit", "_rights", "key", "tenant")

    def __init__(self, rights: Rights, key: str | None, tenant: Tenant) -> None:
        self._rights = rights
        self.key = key
        self.tenant = tenant
        self._limit = asyncio.timeout(None)
        self._fault: ServiceFault | None = None

    async def __aenter__(self) -> None:
        await self._limit.__aenter__()
        self._rights.begin(self)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._rights.end(self)
        try:
            await self._limit.__aexit__(kind, error, trace)
        except TimeoutError:
            if self._fault is None:
                raise
            fault = self._fault
            raise type(fault)(fault.message, hint=fault.hint) from None

    def cut(self, fault: ServiceFault) -> None:
        """End it."""
        self._fault = fault
        self._rights.end(self)
        self._limit.reschedule(0.0)
