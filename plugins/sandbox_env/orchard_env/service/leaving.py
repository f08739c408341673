"""Whether the client of a WebSocket is still there, also while nothing of it is read."""

from __future__ import annotations

import asyncio

from starlette.types import Scope

LEFT = "orchard.left"
"""Where the listener puts it into the scope of a WebSocket."""


async def client_left(scope: Scope) -> None:
    """Returns when the client has gone and what it sent is not taken any more, or its connection is lost.
    Whoever waits to hand its words on is told by nothing else."""
    left = scope.get(LEFT)
    await (left if isinstance(left, asyncio.Event) else asyncio.Event()).wait()
