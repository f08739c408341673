"""Measuring one trajectory: rounds of turns, each turn by its continuations."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, Protocol, TypeVar

from orchard_core.datasets.credit.branch.design import Measured, first_turns, next_turns
from orchard_core.datasets.credit.branch.options import BranchOptions
from orchard_core.rollout.branching.branch import Branch, origin_of
from orchard_core.rollout.branching.brancher import Brancher
from orchard_core.types.credit import ValuePoint
from orchard_core.types.rollout import Rollout

T = TypeVar("T")


class Log(Protocol):
    """Where continuations are kept."""

    def of(self, rollout: str, origin: str) -> dict[tuple[int, int], Branch]:
        """Those that are there, by (turn, number)."""

    def add(self, branch: Branch) -> None:
        """Durable on return."""


class Measuring:
    """The work on one trajectory. What an earlier start measured is taken up, and counts as its own."""

    def __init__(
        self,
        brancher: Brancher,
        rollout: Rollout,
        options: BranchOptions,
        *,
        slots: asyncio.Semaphore,
        log: Log,
        on_branch: Callable[[Branch], None] = lambda _branch: None,
    ) -> None:
        self._brancher = brancher
        self._options = options
        self._slots = slots
        self._log = log
        self._on_branch = on_branch
        self._before = log.of(rollout.id, origin_of(rollout))
        self._round: Sequence[int] = ()
        self._prepared: asyncio.Task[None] | None = None
        self.outcome = min(1.0, max(0.0, rollout.score or 0.0))
        """V(s_T), which is known."""
        self.measured: dict[int, Measured] = {}
        """Every turn that was tried."""
        self.branches: list[Branch] = []
        """Every continuation that was used."""

    async def run(self) -> None:
        """Measure until the curve is done or the budget is spent. Raises ConfigError, SandboxUnsupported."""
        turns = first_turns(self._brancher.turns, self._options)
        while turns:
            self._round, self._prepared = turns, None
            for one, branches in await together([self._turn(turn) for turn in turns]):
                self.measured[one.turn] = one
                self.branches += branches
            left = self._options.max_rollouts - len(self.branches)
            turns = next_turns(self.measured, self._brancher.turns, self.outcome, self._options, left=left)

    def points(self) -> list[ValuePoint]:
        """The turns that are part of the curve, in order."""
        found = [self.measured[turn] for turn in sorted(self.measured)]
        return [one.point() for one in found if one.counts(self._options)]

    async def _turn(self, turn: int) -> tuple[Measured, Sequence[Branch]]:
        """All continuations of a turn, or as many as make its interval narrow enough."""
        options = self._options
        size = options.k if options.width == 0.0 else min(options.batch, options.k)
        done: list[Branch] = []
        while len(done) < options.k:
            numbers = range(len(done), min(len(done) + size, options.k))
            done += await together([self._branch(turn, number) for number in numbers])
            low, high = Measured.of(turn, done, options).interval
            if high - low <= options.width:
                break
        return Measured.of(turn, done, options), done

    async def _branch(self, turn: int, number: int) -> Branch:
        known = self._before.get((turn, number))
        if known is not None:
            return known
        await self._ready()
        async with self._slots:
            branch = await self._brancher.branch(turn, number)
        self._log.add(branch)
        self._on_branch(branch)
        return branch.model_copy(update={"record": None})

    async def _ready(self) -> None:
        """Save the states of this round once, when the first continuation needs them."""
        if self._prepared is None:
            self._prepared = asyncio.create_task(self._prepare())
        await self._prepared

    async def _prepare(self) -> None:
        async with self._slots:
            await self._brancher.prepare(self._round)


async def together(works: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Results in order. The first exception ends the others before it goes on; so does being cancelled."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
