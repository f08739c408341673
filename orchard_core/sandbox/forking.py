"""Several sandboxes that are made together: all of them, or none."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from orchard_core.errors import ConfigError
from orchard_core.sandbox.contract import Sandbox
from orchard_core.sandbox.unbroken import unbroken

_S = TypeVar("_S", bound=Sandbox)


def check_count(count: int) -> None:
    """Raises ConfigError for a number of forks that makes no sense."""
    if count < 1:
        raise ConfigError(f"a sandbox cannot be forked {count} times", hint="ask for one or more")


async def make_all(make: Callable[[], Awaitable[_S]], count: int) -> list[_S]:
    """`count` sandboxes made at once. When one fails, or the caller is cancelled, the others are closed
    before the error goes on."""
    tasks: list[asyncio.Future[_S]] = [asyncio.ensure_future(make()) for _ in range(count)]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        await unbroken(_undo(tasks))
        raise


async def _undo(tasks: list[asyncio.Future[_S]]) -> None:
    for task in tasks:
        task.cancel()
    made = await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.gather(*(one.close() for one in made if not isinstance(one, BaseException)))
