"""Running a command's coroutine so that Ctrl-C is safe: once stops in order, twice stops at once."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from orchard_core.cli.exits import Exit
from orchard_core.rollout.stop import Stop

T = TypeVar("T")

_CODES = {
    signal.SIGINT: Exit.INTERRUPTED,
    signal.SIGTERM: Exit.TERMINATED,
    signal.SIGHUP: Exit.HUNG_UP,
}
_GRACE_S = 2.0
"""After the second signal the process has so long to cut its tear-down short."""
_FIRST = "\nstopping; what is finished is kept. Ctrl-C again stops at once.\n"


def run_async(main: Callable[[Stop], Coroutine[Any, Any, T]]) -> tuple[T, Exit]:
    """Run it to its end; gives its value, and OK or the exit code of the signal that asked it to stop.

    `main` must heed the Stop. The second signal ends the process within two seconds whatever it does:
    sandboxes die with it, and what was reported is on the disk.
    """
    _collect_less_often()
    return asyncio.run(_watched(main))


def _collect_less_often() -> None:
    """A run holds many records that live long and form no cycles. Looking through them after every 700 new
    objects was measured to cost a quarter of each model call."""
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


async def _watched(main: Callable[[Stop], Coroutine[Any, Any, T]]) -> tuple[T, Exit]:
    loop = asyncio.get_running_loop()
    stop = Stop()
    codes: list[Exit] = []

    def asked(number: signal.Signals) -> None:
        if codes:
            loop.call_later(_GRACE_S, os._exit, int(codes[0]))
        else:
            sys.stderr.write(_FIRST)
        codes.append(_CODES[number])
        stop.request()

    watched = [number for number in _CODES if signal.getsignal(number) is not signal.SIG_IGN]  # under nohup
    for number in watched:
        loop.add_signal_handler(number, asked, number)
    try:
        return await main(stop), codes[0] if codes else Exit.OK
    finally:
        for number in watched:
            loop.remove_signal_handler(number)


def cancelling(main: Callable[[], Coroutine[Any, Any, T]]) -> Callable[[Stop], Coroutine[Any, Any, T | None]]:
    """Work that knows no Stop: it is cancelled when it is asked to stop, and its value is then None."""

    async def until_stopped(stop: Stop) -> T | None:
        work = asyncio.ensure_future(main())
        asked = asyncio.ensure_future(stop.once())
        try:
            await asyncio.wait({work, asked}, return_when=asyncio.FIRST_COMPLETED)
            return work.result() if work.done() else None
        finally:
            work.cancel()
            asked.cancel()
            await asyncio.gather(work, asked, return_exceptions=True)

    return until_stopped
