"""Assigning credit: every rollout that has none yet, several at once, each durable before it is reported."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path

from orchard_core.datasets.credit.candidates import Candidate, Standing, read_item
from orchard_core.datasets.credit.estimator import Estimator
from orchard_core.datasets.credit.head import CreditHead
from orchard_core.datasets.credit.refusal import Refusals
from orchard_core.datasets.credit.rules import resolved_credit
from orchard_core.datasets.credit.target import Target, is_done
from orchard_core.datasets.credit.writer import CreditWriter
from orchard_core.errors import ConfigError, RunFutile
from orchard_core.types.credit import Credit

FUTILE = 8
"""So many in a row for which the estimator could not be had end the whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignOptions:
    """How the work is done; nothing here decides a credit."""

    concurrency: int = 8
    """Rollouts estimated at once."""
    max_usd: float | None = None
    """No further rollout is begun once this start has spent so much; None: no bound."""
    retry_failed: bool = False
    """Also those whose credit is an error."""

    def __post_init__(self) -> None:
        """Raises ConfigError."""
        if self.concurrency < 1:
            raise ConfigError(f"concurrency is {self.concurrency}", hint="at least one rollout at once")


@dataclass(slots=True, kw_only=True)
class _Open:
    """A target that is being written."""

    target: Target
    writer: CreditWriter
    pending: int = 0
    exhausted: bool = False

    def settle(self) -> None:
        """Close it when nothing of it is left."""
        if self.exhausted and not self.pending:
            self.writer.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """One rollout to be credited."""

    place: _Open
    candidate: Candidate


@dataclass(slots=True, kw_only=True)
class Assignment:
    """The work on some targets. `credits` does it; what it counts may be read meanwhile."""

    targets: Sequence[Target]
    """Where."""
    estimator: Estimator
    """By what."""
    head: CreditHead
    """What each directory says of itself."""
    threshold: float
    """A score of at least this has passed."""
    options: AssignOptions = field(default_factory=AssignOptions)
    """How."""
    spent_usd: float = 0.0
    """US dollars of this start, as far as known."""
    unpriced: bool = False
    """Some of its cost is unknown."""
    capped: bool = False
    """It ended early, at `max_usd`."""
    passed_over: Counter[str] = field(default_factory=Counter)
    """Rollouts that turned out to have nothing to be credited, by the reason."""
    refused: Mapping[Path, str] = field(default_factory=dict)
    """Runs that the estimator refuses as a whole, and why."""
    _lost: int = 0
    _opened: list[_Open] = field(default_factory=list)

    async def credits(self) -> AsyncGenerator[Credit, None]:
        """Every new credit, in the order they are done.

        A cell that the estimator refuses is left out. Raises CreditRefused when it refuses all,
        DatasetLocked, ConfigError, DatasetCorrupt; RunFutile when the estimator could not be had several
        times in a row. What was given is kept.
        """
        pending: set[asyncio.Task[Credit | None]] = set()
        try:
            async with aclosing(self._work()) as todo:
                async for work in todo:
                    pending.add(asyncio.create_task(self._one(work)))
                    if len(pending) >= self.options.concurrency:
                        done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                        for credit in self._taken(done):
                            yield credit
            while pending:
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                for credit in self._taken(done):
                    yield credit
        finally:
            for task in pending:
                task.cancel()
            await asyncio.gather(*pending, return_exceptions=True)
            for place in self._opened:
                place.writer.close()

    async def _work(self) -> AsyncGenerator[_Work, None]:
        refusals = Refusals(
            estimator=self.estimator,
            head=self.head,
            threshold=self.threshold,
            retry_failed=self.options.retry_failed,
        )
        self.refused = refusals.reasons
        for target in self.targets:
            if await refusals.leave_out(target):
                continue
            place = _Open(target=target, writer=CreditWriter.open(target.directory, self.head))
            self._opened.append(place)
            for candidate in target.candidates():
                if self._is_spent():
                    self.capped = True
                    return
                if self._wanted(candidate, place.writer.before):
                    place.pending += 1
                    yield _Work(place=place, candidate=candidate)
            place.exhausted = True
            place.settle()
        refusals.check(len(self.targets))

    def _is_spent(self) -> bool:
        """Whether the bound is reached; one of zero is not by work that is free."""
        bound = self.options.max_usd
        return bound is not None and self.spent_usd > 0 and self.spent_usd >= bound

    def _wanted(self, candidate: Candidate, before: Mapping[str, Credit]) -> bool:
        if candidate.standing(self.threshold) is Standing.LEFT_OUT:
            return False
        return not is_done(candidate, before.get(candidate.rollout), retry_failed=self.options.retry_failed)

    async def _one(self, work: _Work) -> Credit | None:
        try:
            credit = await self._credit(work)
            if credit is not None:
                work.place.writer.add(credit)
            return credit
        finally:
            work.place.pending -= 1
            work.place.settle()

    async def _credit(self, work: _Work) -> Credit | None:
        candidate = work.candidate
        item = await asyncio.to_thread(read_item, candidate)
        if isinstance(item, str):
            self.passed_over[item] += 1
            return None
        if candidate.standing(self.threshold) is Standing.RESOLVED:
            found = resolved_credit(candidate.rollout, estimator=self.estimator.name, turns=item.row.turns)
        else:
            found = await self.estimator.estimate(item)
            found = found.model_copy(update={"settings": {**found.settings, **self.head.settings}})
        self._spend(found)
        return _with_history(found, work)

    def _spend(self, credit: Credit) -> None:
        self.spent_usd += credit.cost_usd or 0.0
        self.unpriced |= credit.cost_usd is None

    def _taken(self, done: set[asyncio.Task[Credit | None]]) -> list[Credit]:
        faults = [fault for task in done if (fault := task.exception()) is not None]
        if faults:
            raise faults[0]
        found = [credit for task in done if (credit := task.result()) is not None]
        for credit in found:
            self._lost = self._lost + 1 if credit.again else (self._lost if credit.resolved else 0)
        if self._lost >= max(FUTILE, self.options.concurrency):
            said = next(credit.error for credit in reversed(found) if credit.again)
            raise RunFutile(
                f"{self._lost} rollouts in a row could not be estimated: {said}",
                hint="mend that, then give the same command again: what is done is kept",
            )
        return found


def _with_history(found: Credit, work: _Work) -> Credit:
    """The credit with what it is of, and the cost of earlier tries."""
    settings = {**found.settings, **work.candidate.stamp}
    before = work.place.writer.before.get(found.rollout)
    cost = found.cost_usd
    if before is not None:
        cost = None if cost is None or before.cost_usd is None else cost + before.cost_usd
    return found.model_copy(update={"settings": settings, "cost_usd": cost})
