"""Many sandboxes ended, a bounded number at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

_S = TypeVar("_S")

AT_ONCE = 64
"""A thousand ends at once would open a thousand connections and start as many programs, and be no faster."""


async def each_closed(
    sandboxes: Iterable[_S], close: Callable[[_S], Awaitable[None]], *, at_once: int = AT_ONCE
) -> None:
    """Close all that are there now. One whose end fails keeps none of the others; the first failure is raised
    when every one was tried. A cancelled caller's are closed no further."""
    waiting = iter(list(sandboxes))
    faults: list[Exception] = []

    async def work() -> None:
        for sandbox in waiting:
            try:
                await close(sandbox)
            except Exception as error:  # noqa: BLE001 - raised below, when the others are closed too
                faults.append(error)

    await asyncio.gather(*(work() for _ in range(at_once)))
    if faults:
        raise faults[0]
