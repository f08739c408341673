"""Where the workers of a run come from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from orchard_core.rollout.stop import Stop

HOPELESS = 78
"""Exit code of a worker that would end in the same way however often it was started: it is not started
again. (EX_CONFIG of sysexits.h.)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkOrder:
    """What workers are wanted."""

    run: Path
    """The run directory; each worker must see it under this very path, or as the workforce was told."""
    count: int
    """Number of workers; each runs `orchard worker RUN --index I --count COUNT`."""
    restarts: int = 3
    """How often one that died is started again before its run is given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerNews:
    """Something that happened to one worker."""

    index: int
    """Which, from 0."""
    text: str
    """For people, such as `started on node-7` or `killed by signal 9; started again`."""


@runtime_checkable
class Workforce(Protocol):
    """Starts the workers of a run somewhere, and keeps them going."""

    @property
    def name(self) -> str:
        """As the user names it."""

    async def settle(self, order: WorkOrder) -> None:
        """End what an earlier coordinator of this very run, which was killed, has left running, and return
        when none of it writes any more; nothing of another run is touched. The caller holds the run's lock.
        """

    async def work(self, order: WorkOrder, stop: Stop, told: Callable[[WorkerNews], None]) -> None:
        """Return when each worker has ended well, or when all have ended after a stop was asked for: once,
        each stops in order; twice, at once. One that dies is started again and goes on where it was.

        Nothing of it runs when this returns, raises or is cancelled. Raises WorkersFailed, with the last
        words of a worker that died too often or said HOPELESS, and ConfigError before anything starts.
        """
