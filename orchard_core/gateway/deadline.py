"""A bound on time like `asyncio.timeout`, cheap enough for every call.

A timer of its own costs a call a heap entry that is nearly always cancelled, and stays for a while even then.
Bounds of one length end in the order in which they began, so that one timer serves all of them.
"""

from __future__ import annotations

import asyncio
import threading
from types import TracebackType


class Deadline:
    """Around code that may take so many seconds: raises TimeoutError after. Use it once."""

    __slots__ = ("_cancelling", "_expired", "_queue", "_seconds", "_task", "when")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._expired = False
        self.when = 0.0

    def __enter__(self) -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        if task is None:
            raise RuntimeError("a deadline bounds a task")
        self._task, self._cancelling = task, task.cancelling()
        self.when = loop.time() + self._seconds
        self._queue = _queue(loop, self._seconds)
        self._queue.add(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._queue.waiting.pop(self, None)
        # As asyncio.timeout does it: whoever else has cancelled the task meanwhile must see it cancelled.
        if self._expired and self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def expire(self) -> None:
        """Time is up."""
        self._expired = True
        self._task.cancel()


class _Queue:
    """Deadlines of one length."""

    __slots__ = ("_armed", "_loop", "waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._armed = False
        self.waiting: dict[Deadline, None] = {}  # the first ends first

    def add(self, deadline: Deadline) -> None:
        """The last to end."""
        self.waiting[deadline] = None
        if not self._armed:
            self._arm(deadline)

    def _arm(self, first: Deadline) -> None:
        self._armed = True
        self._loop.call_at(first.when, self._sweep)

    def _sweep(self) -> None:
        """The deadline that the timer was set for has come; it may be long gone."""
        self._armed = False
        now = self._loop.time()
        overdue = []
        for deadline in self.waiting:
            if deadline.when > now:
                self._arm(deadline)
                break
            overdue.append(deadline)
        for deadline in overdue:
            del self.waiting[deadline]
            deadline.expire()


class _Here(threading.local):
    """The queues of this thread's running loop. Those of an earlier loop go."""

    loop: asyncio.AbstractEventLoop | None = None
    queues: dict[float, _Queue]


_here = _Here()


def _queue(loop: asyncio.AbstractEventLoop, seconds: float) -> _Queue:
    if _here.loop is not loop:
        _here.loop, _here.queues = loop, {}
    queue = _here.queues.get(seconds)
    if queue is None:
        queue = _here.queues[seconds] = _Queue(loop)
    return queue
