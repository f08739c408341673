"""Work that no cancellation cuts short."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

_T = TypeVar("_T")


async def unbroken(work: Awaitable[_T]) -> _T:
    """Wait for `work` however often the caller is cancelled meanwhile; that is raised when the work is done.

    `asyncio.shield` alone lets a second cancellation return early, with the work still going on behind the
    caller's back. What `work` raises is raised here, unless the caller was cancelled.
    """
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled from (None if task.cancelled() else task.exception())
    return task.result()
