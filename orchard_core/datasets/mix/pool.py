"""Work in several processes, with the same result as in one."""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, TypeVar

from orchard_core.errors import DatasetError, OrchardError

A = TypeVar("A")
B = TypeVar("B")
Tell = Callable[[int, int], None]
"""Told rows and bytes of a job so far."""
Work = Callable[[A, Tell], B]
"""What is done with a job."""
_Fault = tuple[type[OrchardError], tuple[Any, ...], dict[str, Any]]
_PR_SET_PDEATHSIG = 1
_LOOK_S = 0.2

_counters: Any = None
"""In a worker alone: rows and bytes of each job so far, in memory shared with the parent."""


_SLOTS = 4_096
"""Jobs whose progress is told while they run; of further ones, only that they are done."""


@contextmanager
def pool(workers: int) -> Iterator[Pool]:
    """Some processes; 1: all is done here. On an error, or Ctrl-C, they are ended at once: what they do is as
    safe as against a kill."""
    if workers <= 1:
        yield Pool(None, [0] * (2 * _SLOTS))
        return
    context = multiprocessing.get_context(_method())
    counters = context.Array("q", 2 * _SLOTS, lock=False)
    executor = ProcessPoolExecutor(
        workers, mp_context=context, initializer=_begin, initargs=(counters, os.getpid())
    )
    executor.submit(int).result()  # begins them before this process holds locks or has threads of its own
    try:
        yield Pool(executor, counters)
        executor.shutdown()
    except BaseException:
        for process in list((executor._processes or {}).values()):
            process.kill()
        executor.shutdown(wait=True, cancel_futures=True)
        raise


def _method() -> str:
    """Forking is a second of work less for each process, and safe while this one has a single thread."""
    return "fork" if sys.platform == "linux" and threading.active_count() == 1 else "spawn"


def _begin(counters: Any, parent: int) -> None:
    """In a worker: Ctrl-C is for the parent to hear, and it dies with the parent."""
    global _counters  # noqa: PLW0603 - an initializer has no other way to hand something to its jobs
    _counters = counters
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy's own would spin, and have nothing to do here
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)  # rows come by the thousand, and none is part of a cycle
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL))
        if os.getppid() != parent:
            os._exit(1)


class Pool:
    """Gives jobs to workers, or does them here."""

    def __init__(self, executor: ProcessPoolExecutor | None, counters: Any) -> None:
        self._executor = executor
        self._counters = counters

    def map(self, work: Work[A, B], jobs: Iterable[A], look: Callable[[], None]) -> Iterator[B]:
        """`work(job, tell)` of each job, in their order; `look` is called now and then. Raises what the first
        failing one raised."""
        self._counters[:] = [0] * (2 * _SLOTS)
        if self._executor is None:
            for number, job in enumerate(jobs):
                yield work(job, _telling(self._counters, number, look))
                look()
            return
        waiting = [self._executor.submit(_guarded, work, job, number) for number, job in enumerate(jobs)]
        pending: set[Future[Any]] = set(waiting)
        for future in waiting:
            while not future.done():
                finished, pending = wait(pending, timeout=_LOOK_S, return_when=FIRST_COMPLETED)
                for other in finished:
                    _result(other)  # a failure is told at once, not when its turn comes
                look()
            yield _result(future)

    def counted(self) -> tuple[int, int]:
        """Rows and bytes that the jobs have told so far."""
        return sum(self._counters[0::2]), sum(self._counters[1::2])


def _telling(counters: Any, number: int, look: Callable[[], None] | None = None) -> Tell:
    def tell(rows: int, size: int) -> None:
        if number < _SLOTS:
            counters[2 * number], counters[2 * number + 1] = rows, size
        if look is not None:
            look()

    return tell


def _guarded(work: Work[A, B], job: A, number: int) -> tuple[B | None, _Fault | None]:
    """Our errors travel as what they hold: their constructors take more than a message."""
    try:
        return work(job, _telling(_counters, number)), None
    except OrchardError as error:
        return None, (type(error), error.args, error.__dict__)


def _result(future: Future[tuple[B | None, _Fault | None]]) -> B:
    try:
        result, fault = future.result()
    except BrokenProcessPool:
        raise DatasetError(
            "a process that read or wrote rows was killed, most likely for want of memory",
            hint="run the command again: it goes on; --workers 1 needs the least memory",
        ) from None
    if fault is not None:
        raise _error(*fault)
    return result  # type: ignore[return-value] # there is a result where there is no fault


def _error(kind: type[OrchardError], args: tuple[Any, ...], fields: dict[str, Any]) -> OrchardError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(fields)
    return error
