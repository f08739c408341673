"""Every sandbox that the service has, over any provider."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager

from orchard_core import SandboxProvider, SandboxSpec, Snapshot
from orchard_env.service.entry import Entry
from orchard_env.service.settings import ServiceSettings


class Fleet:
    """The sandboxes of one provider. What stands there is the truth; the entries are a cache of it."""

    def __init__(self, provider: SandboxProvider, *, settings: ServiceSettings) -> None:
        self.provider = provider
        """Who makes them."""
        self._settings = settings

    async def create(
        self,
        spec: SandboxSpec,
        *,
        tenant: str,
        restore: Snapshot | None = None,
        limit_s: float | None = None,
        slot: AbstractAsyncContextManager[None] | None = None,
    ) -> Entry:
        """An entry that is pending, at once; the sandbox comes up behind it, within `limit_s` seconds or not
        at all. `spec.name` is the id asked for. `slot` is entered here and left when it is up.
        Raises SandboxExists, ServiceOverloaded, TooManyRequests and what the provider refuses at once."""
        raise NotImplementedError

    async def get(self, sandbox_id: str, *, tenant: str | None) -> Entry:
        """The entry of that id if it is this tenant's; None: whoever's (an administrator asks). A miss asks
        the provider. Raises SandboxUnknown, and SandboxUnavailable when that cannot be known."""
        raise NotImplementedError

    async def list(self, *, tenant: str | None) -> list[Entry]:
        """Every entry of a tenant, or of all, oldest first. Raises SandboxUnavailable."""
        raise NotImplementedError

    async def delete(self, entry: Entry) -> None:
        """End the sandbox, or its making; it is gone when this returns, whoever is cancelled meanwhile."""
        raise NotImplementedError

    async def beat(self, entry: Entry) -> None:
        """A heartbeat came: from now on the sandbox is destroyed when no more come."""
        raise NotImplementedError

    async def adopt(self, sandboxes: Iterable[object], *, tenant: str) -> list[Entry]:
        """Entries of sandboxes that came up otherwise, such as forks."""
        raise NotImplementedError
