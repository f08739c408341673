"""For a harness whose package is synchronous: it runs in a thread, and waits on the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent import futures
from threading import Thread
from typing import Any, TypeVar

from orchard_core.sandbox.unbroken import unbroken

T = TypeVar("T")


class Ended(BaseException):
    """The run is over: leave the thread. Not an Exception, so that no `except Exception` holds it up."""


class ThreadBridge:
    """Runs one program in a thread of its own, so that as many run side by side as there are rollouts.
    Cancelling `drive` cancels what the program waits for, lets it wait no more, and leaves no thread."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waits: set[asyncio.Task[Any]] = set()
        self._over = False

    async def drive(self, program: Callable[[], T]) -> T:
        """Run it to its end and return what it returns, or raise what it raises."""
        ended: asyncio.Future[T] = self._loop.create_future()
        thread = Thread(target=self._work, args=(program, ended), name="harness", daemon=True)
        thread.start()
        try:
            return await asyncio.shield(ended)
        finally:
            self._over = True
            for wait in self._waits:
                wait.cancel()
            await unbroken(asyncio.wait([ended]))
            ended.exception()  # seen, also where nobody awaits it any more
            thread.join()

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """From the program's thread: do this on the loop. Raises Ended once the run is cancelled."""
        try:
            return asyncio.run_coroutine_threadsafe(self._tracked(work), self._loop).result()
        except futures.CancelledError as error:
            raise Ended from error

    async def _tracked(self, work: Coroutine[Any, Any, T]) -> T:
        task = asyncio.current_task()
        if self._over or task is None:
            work.close()
            raise asyncio.CancelledError
        self._waits.add(task)
        try:
            return await work
        finally:
            self._waits.discard(task)

    def _work(self, program: Callable[[], T], ended: asyncio.Future[T]) -> None:
        try:
            result = program()
        except BaseException as error:  # noqa: BLE001 - border of a thread: raised again where it is awaited
            self._loop.call_soon_threadsafe(ended.set_exception, _carried(error))
        else:
            self._loop.call_soon_threadsafe(ended.set_result, result)


def _carried(error: BaseException) -> BaseException:
    """A future takes no StopIteration, and these would end the loop itself."""
    if isinstance(error, (StopIteration, SystemExit, KeyboardInterrupt)):
        return RuntimeError(f"the agent raised {type(error).__name__}: {error}")
    return error
