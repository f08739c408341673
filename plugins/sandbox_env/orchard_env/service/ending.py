"""Background tasks brought to their end."""

from __future__ import annotations

import asyncio
from typing import Any

_AGAIN_S = 0.2


async def ended(*tasks: asyncio.Task[Any] | None) -> None:
    """Cancel tasks and wait until they are done. What swallows a cancellation, as clients of networks do at
    times, is cancelled again."""
    pending = {task for task in tasks if task is not None and not task.done()}
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=_AGAIN_S)
