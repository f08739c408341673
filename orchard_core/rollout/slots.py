"""Room to run, which several runs may share."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import Protocol


class Slots(Protocol):
    """Where a rollout gets leave to run."""

    def held(self) -> AbstractAsyncContextManager[None]:
        """Wait for a slot; it is given back on exit."""


class AnySlot:
    """A run on its own: its number of workers is the bound."""

    def held(self) -> AbstractAsyncContextManager[None]:
        """At once."""
        return nullcontext()


@dataclass(slots=True, eq=False)
class _Waiter:
    names: Sequence[str]
    """Bounds it counts against."""
    ready: asyncio.Future[None]
    """Done once it may run."""


class SharedSlots:
    """Slots under several named bounds at once, such as one overall and one for each model.

    Who waits first runs first, but nobody waits for room that another could use: a rollout whose model is
    busy does not hold up one of another model.
    """

    def __init__(self, bounds: Mapping[str, int]) -> None:
        self._bounds = bounds
        self._used: Counter[str] = Counter()
        self._waiting: deque[_Waiter] = deque()

    def of(self, *names: str) -> Slots:
        """Slots that count against each of these bounds; a name without a bound is free."""
        return _Lane(self, [name for name in names if name in self._bounds])

    @asynccontextmanager
    async def held(self, names: Sequence[str]) -> AsyncIterator[None]:
        """Hold one slot of each."""
        waiter = _Waiter(names, asyncio.get_running_loop().create_future())
        self._waiting.append(waiter)
        self._admit()
        try:
            await waiter.ready
            yield
        finally:
            self._leave(waiter)

    def _leave(self, waiter: _Waiter) -> None:
        if waiter in self._waiting:
            self._waiting.remove(waiter)
        else:  # admitted, if only at the moment it was cancelled
            self._used.subtract(waiter.names)
        self._admit()

    def _admit(self) -> None:
        for waiter in list(self._waiting):
            if all(self._used[name] < self._bounds[name] for name in waiter.names):
                self._used.update(waiter.names)
                self._waiting.remove(waiter)
                if not waiter.ready.done():
                    waiter.ready.set_result(None)


class _Lane:
    def __init__(self, slots: SharedSlots, names: Sequence[str]) -> None:
        self._slots = slots
        self._names = names

    def held(self) -> AbstractAsyncContextManager[None]:
        return self._slots.held(self._names)
