"""Workers as processes of this machine."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections import deque
from collections.abc import Callable

from orchard_core.errors import WorkersFailed
from orchard_core.rollout.stop import Stop
from orchard_core.rollout.workers.contract import HOPELESS, WorkerNews, WorkOrder
from orchard_core.sandbox.unbroken import unbroken

_WORDS = 20
_PAUSE_S = 1.0
_GRACE_S = 30.0
STOPPED = frozenset({0, 129, 130, 143})
"""Exit codes of a worker that has done its share, or was asked to stop and did."""


class ProcessWorkforce:
    """Honours `orchard_core.Workforce`. A worker ends when the process that started it is gone."""

    @property
    def name(self) -> str:
        """See Workforce."""
        return "processes"

    async def settle(self, order: WorkOrder) -> None:
        """See Workforce. Its workers end by themselves; who takes over their parts waits for that."""

    async def work(self, order: WorkOrder, stop: Stop, told: Callable[[WorkerNews], None]) -> None:
        """See Workforce."""
        crew = [
            asyncio.create_task(_Worker(order, index, stop, told).keep_going())
            for index in range(order.count)
        ]
        try:
            await asyncio.gather(*crew)
        finally:
            for task in crew:
                task.cancel()
            await unbroken(asyncio.gather(*crew, return_exceptions=True))


class _Worker:
    def __init__(self, order: WorkOrder, index: int, stop: Stop, told: Callable[[WorkerNews], None]) -> None:
        self._order = order
        self._index = index
        self._stop = stop
        self._told = told

    async def keep_going(self) -> None:
        """Start it, and again when it dies. Raises WorkersFailed."""
        for tries in range(self._order.restarts + 1):
            code, words = await self._once()
            if code in STOPPED and (code == 0 or self._stop.requested):
                return
            how = f"killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
            if self._stop.requested:
                return
            if code == HOPELESS:
                break
            if tries < self._order.restarts:
                self._told(WorkerNews(index=self._index, text=f"{how}; started again"))
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stop.once(), _PAUSE_S * 2**tries)
                    return
        raise WorkersFailed(
            f"worker {self._index} {how}, after {tries} restarts\n{words}".rstrip(),
            hint=f"mend the cause, then orchard run --resume --out {self._order.run}",
        )

    async def _once(self) -> tuple[int, str]:
        order = self._order
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "orchard_core.cli.main", "worker", str(order.run),
            "--index", str(self._index), "--count", str(order.count), "--with-parent",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        stopping = asyncio.create_task(self._pass_stop(process))
        try:
            words = await _last_words(process)
            return await process.wait(), words
        finally:
            stopping.cancel()
            if process.returncode is None:
                await unbroken(_end(process))

    async def _pass_stop(self, process: asyncio.subprocess.Process) -> None:
        await self._stop.once()
        _signal(process, signal.SIGINT)
        await self._stop.twice()
        _signal(process, signal.SIGINT)


async def _last_words(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None
    kept: deque[str] = deque(maxlen=_WORDS)
    while line := await process.stderr.readline():
        kept.append(line.decode("utf-8", "replace").rstrip())
    return "\n".join(kept)


async def _end(process: asyncio.subprocess.Process) -> None:
    """In order, then at once."""
    _signal(process, signal.SIGINT)
    try:
        await asyncio.wait_for(process.wait(), _GRACE_S)
    except TimeoutError:
        _signal(process, signal.SIGKILL)
        await process.wait()


def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(number)
