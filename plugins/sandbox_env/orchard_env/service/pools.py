"""Pods that a provider makes before they are asked for: one replica has them made."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Protocol, runtime_checkable

from orchard_core import OrchardError, SandboxProvider
from orchard_env.service.ending import ended

_AGAIN_S = 5.0
_LOG = logging.getLogger("orchard.service.pools")


@runtime_checkable
class PoolKeeping(Protocol):
    """A provider with pools."""

    async def keep_pools(self, leads: Callable[[], bool]) -> None:
        """Fill them from now on, while `leads` says so. Raises OrchardError when that cannot begin."""


@asynccontextmanager
async def keeping_pools(provider: SandboxProvider, leads: Callable[[], bool]) -> AsyncIterator[None]:
    """Have a provider that has pools fill them, until it is left; a provider that is out of reach is tried
    again, and keeps nothing from starting."""
    keeping = None
    if isinstance(provider, PoolKeeping):
        keeping = asyncio.create_task(_begin(provider, leads), name="begin-pools")
    try:
        yield
    finally:
        await ended(keeping)


async def _begin(provider: PoolKeeping, leads: Callable[[], bool]) -> None:
    while True:
        try:
            await provider.keep_pools(leads)
            return
        except OrchardError as error:
            _LOG.warning("the pools cannot be filled yet: %s", error.message)
            await asyncio.sleep(_AGAIN_S)
