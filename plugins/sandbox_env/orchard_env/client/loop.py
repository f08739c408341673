"""The event loop behind the synchronous face: one thread of a process, started when it is first needed."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import selectors
import threading
from collections.abc import Coroutine
from typing import Any, Generic, TypeVar

_CANCEL_S = 90.0
_T = TypeVar("_T")


class BackgroundLoop:
    """Runs coroutines for callers that have no loop, or are inside of one that they must not block on."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._selector = selectors.DefaultSelector()
        self._loop = asyncio.SelectorEventLoop(self._selector)
        self._loop.set_exception_handler(_say)
        self._thread = threading.Thread(target=self._loop.run_forever, name="orchard-env", daemon=True)
        self._thread.start()

    @property
    def usable(self) -> bool:
        """This process started it, and it runs."""
        return self._pid == os.getpid() and self._thread.is_alive()

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """What it gives, or raises. Ctrl-C cancels it and waits until it has ended."""
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("the synchronous face waits for this very thread: use the async client here")
        running = _Running(self._loop, work)
        try:
            return running.done.result()
        except KeyboardInterrupt:
            running.cancel()
            concurrent.futures.wait([running.done], timeout=_CANCEL_S)
            raise

    def leave_to_parent(self) -> None:
        """In a fork()ed child: what this loop watches is the parent's, and closing it here must not end it
        there."""
        self._selector.close()


def _say(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What a loop says by itself, but for connections of a client that nobody closed: they end with it."""
    if not str(context.get("message")).startswith("Unclosed "):
        loop.default_exception_handler(context)


class _Running(Generic[_T]):
    """One piece of work. `done` has its end, which a cancellation does not bring forward."""

    def __init__(self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, _T]) -> None:
        self.done: concurrent.futures.Future[_T] = concurrent.futures.Future()
        self._loop = loop
        self._work = work
        self._task: asyncio.Task[_T] | None = None
        loop.call_soon_threadsafe(self._begin)

    def cancel(self) -> None:
        """Ask it to end."""
        self._loop.call_soon_threadsafe(lambda: self._task is not None and self._task.cancel())

    def _begin(self) -> None:
        self._task = self._loop.create_task(self._work)
        self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[_T]) -> None:
        if task.cancelled():
            self.done.set_exception(asyncio.CancelledError())
        elif (error := task.exception()) is not None:
            self.done.set_exception(error)
        else:
            self.done.set_result(task.result())


class _Loops:
    """The loop of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._current: BackgroundLoop | None = None
        self._parents: list[BackgroundLoop] = []
        self._registered = False

    def current(self) -> BackgroundLoop:
        with self._lock:
            if self._current is None or not self._current.usable:
                if not self._registered:
                    os.register_at_fork(after_in_child=self._forked)
                    self._registered = True
                self._current = BackgroundLoop()
            return self._current

    def _forked(self) -> None:
        self._lock = threading.Lock()
        if self._current is not None:
            self._current.leave_to_parent()
            self._parents.append(self._current)  # collecting it would warn, and touch what is the parent's
            self._current = None


_LOOPS = _Loops()


def background_loop() -> BackgroundLoop:
    """The one of this process."""
    return _LOOPS.current()
