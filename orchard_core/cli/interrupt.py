"""Running a command's coroutine so that Ctrl-C is safe: once stops in order, twice stops at once."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from orchard_core.cli.exits import Exit

T = TypeVar("T")

_CODES = {signal.SIGINT: Exit.INTERRUPTED, signal.SIGTERM: Exit.TERMINATED}


class Interrupted(Exception):
    """The user stopped the command; `code` is the exit code for it."""

    def __init__(self, code: Exit) -> None:
        super().__init__(code.name)
        self.code = code


def run_async(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run it to its end. Raises Interrupted after an orderly stop by SIGINT or SIGTERM.

    The first signal cancels the coroutine, which stops what it started and keeps what is finished. The
    second ends the process at once: sandboxes die with it, and the store needs no goodbye.
    """
    return asyncio.run(_watched(main))


async def _watched(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(main())
    seen: list[signal.Signals] = []

    def stop(number: signal.Signals) -> None:
        if seen:
            os._exit(_CODES[number])
        seen.append(number)
        sys.stderr.write("\nstopping: running rollouts are cancelled, finished ones are kept; again: at once\n")
        task.cancel()

    for number in _CODES:
        loop.add_signal_handler(number, stop, number)
    try:
        return await task
    except asyncio.CancelledError:
        if seen:
            raise Interrupted(_CODES[seen[0]]) from None
        raise
    finally:
        for number in _CODES:
            loop.remove_signal_handler(number)
