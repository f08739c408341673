"""A process that stops when the one that started it is gone."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator

from orchard_core.rollout.stop import Stop


@contextlib.asynccontextmanager
async def stopping_with_parent(stop: Stop, *, wanted: bool) -> AsyncIterator[None]:
    """Ask to stop when standard input ends, which nothing is read from."""
    loop, number = asyncio.get_running_loop(), sys.stdin.fileno() if wanted else -1

    def readable() -> None:
        if not os.read(number, 4096):
            loop.remove_reader(number)
            stop.request()

    if wanted:
        loop.add_reader(number, readable)
    try:
        yield
    finally:
        if wanted:
            loop.remove_reader(number)
