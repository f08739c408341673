"""A place in a queue that is given back before the work ends: waiting for a command uses nothing of ours."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

BRIEF_S = 1.0
"""So long what mostly waits holds its place."""


@asynccontextmanager
async def held_briefly(
    turn: AbstractAsyncContextManager[None], seconds: float = BRIEF_S
) -> AsyncIterator[None]:
    """Wait for the turn; it is given back after so many seconds, or at the end of the work."""
    stack = AsyncExitStack()
    await stack.enter_async_context(turn)
    later = asyncio.create_task(_later(stack, seconds))
    try:
        yield
    finally:
        later.cancel()
        await asyncio.gather(later, return_exceptions=True)
        await stack.aclose()


async def _later(stack: AsyncExitStack, seconds: float) -> None:
    await asyncio.sleep(seconds)
    await stack.pop_all().aclose()
