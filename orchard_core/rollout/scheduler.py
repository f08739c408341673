"""Many rollouts at once: bounded, retried by class, stopped in order, reported once they are durable."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from orchard_core.errors import RecordCorrupt, RegradeRefused
from orchard_core.rollout.attempt import run_rollout
from orchard_core.rollout.events import EventBus
from orchard_core.rollout.futile import Futility
from orchard_core.rollout.grading import regrade
from orchard_core.rollout.identity import digest, rollout_id, rollout_seed
from orchard_core.rollout.parts import RolloutParts
from orchard_core.rollout.pool import Pool
from orchard_core.rollout.retry import RetryPolicy
from orchard_core.rollout.sampler import Drop, GroupSampler, More
from orchard_core.rollout.slots import Slots
from orchard_core.rollout.stop import Stop
from orchard_core.rollout.store.entry import Finished, Planned
from orchard_core.rollout.store.writer import RunWriter
from orchard_core.sandbox.unbroken import unbroken
from orchard_core.types.events import PhaseStarted, RolloutFinished, RolloutStarted, RunFinished, RunStarted
from orchard_core.types.rollout import Phase, Rollout
from orchard_core.types.task import Task

_LOG = logging.getLogger("orchard.rollout")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ticket:
    planned: Planned
    tries: int
    """In all, over every session of the run, this one included."""
    session_tries: int
    """Within this session of the run."""
    graded: Finished | None = None
    """Its record, when it is to be graded again instead of run."""


class Scheduler:
    """Executes what the group sampler decides."""

    def __init__(
        self,
        *,
        tasks: Mapping[str, Task],
        parts: RolloutParts,
        writer: RunWriter,
        sampler: GroupSampler,
        concurrency: int,
        retry: RetryPolicy,
        seed: int,
        bus: EventBus,
        stop: Stop,
        slots: Slots,
    ) -> None:
        self._tasks = tasks
        self._parts = parts
        self._writer = writer
        self._sampler = sampler
        self._concurrency = concurrency
        self._retry = retry
        self._seed = seed
        self._bus = bus
        self._stop = stop
        self._slots = slots
        self._ready: asyncio.Queue[_Ticket] = asyncio.Queue()
        self._results: asyncio.Queue[Rollout] = asyncio.Queue(maxsize=concurrency)
        self._running: set[asyncio.Task[Any]] = set()
        self._pool = Pool()
        self._futility = Futility(retry.alike, run=writer.root)
        self._open = 0
        self._busy = 0
        self._changed = asyncio.Event()

    async def rollouts(self) -> AsyncGenerator[Rollout, None]:
        """Run everything; give each rollout once it is durable, in the order they end.

        Raises ConfigError, SandboxUnsupported, RunFutile and StoreError, after everything was torn down.
        """
        supervisor = asyncio.create_task(self._supervise())
        getter = asyncio.create_task(self._results.get())
        try:
            while True:
                await asyncio.wait({getter, supervisor}, return_when=asyncio.FIRST_COMPLETED)
                if not getter.done():
                    break
                yield getter.result()
                getter = asyncio.create_task(self._results.get())
            getter.cancel()
            while not self._results.empty():
                yield self._results.get_nowait()
            await supervisor
        finally:
            for task in (getter, supervisor):
                task.cancel()
            await asyncio.gather(getter, supervisor, return_exceptions=True)

    async def _supervise(self) -> None:
        try:
            await self._begin()
            await self._run_workers()
        finally:
            self._bus.emit(
                RunFinished(
                    run=str(self._writer.root),
                    finished=len(self._writer.state.finished),
                    cancelled=self._stop.requested,
                    at=time.time(),
                )
            )

    async def _run_workers(self) -> None:
        workers = [asyncio.create_task(self._work()) for _ in range(self._concurrency)]
        watchers = [asyncio.create_task(self._end_when_stopped()), asyncio.create_task(self._end_when_done())]
        try:
            await asyncio.wait({*workers, *watchers}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (*workers, *watchers):
                task.cancel()
            ended = await asyncio.gather(*workers, *watchers, return_exceptions=True)
        for result in ended:
            if isinstance(result, BaseException) and not isinstance(result, asyncio.CancelledError):
                raise result

    async def _begin(self) -> None:
        """Take up what the journal left open, and plan what the sampler wants beyond that."""
        state = self._writer.state
        redo = self._to_redo()
        for entry in state.finished.values():
            if entry.id not in redo:
                self._pool.add(entry)
        for planned in state.planned.values():
            self._pool.plan(planned)
            if planned.id in redo or planned.id not in state.finished:
                self._issue(planned, graded=redo.get(planned.id))
        new = [item for task in self._tasks for item in await self._wanted(task)]
        new.sort(key=lambda item: item.attempt)  # one attempt at every task before the second at any
        await self._writer.plan(new)
        for planned in new:
            self._issue(planned)
        self._bus.emit(
            RunStarted(
                run=str(self._writer.root),
                planned=len(state.planned),
                finished=len(state.finished) - len(redo),
                at=time.time(),
            )
        )

    def _to_redo(self) -> dict[str, Finished | None]:
        """Finished rollouts to take up again by id, with the record to grade, None to run the agent."""
        redo: dict[str, Finished | None] = {}
        for entry in self._writer.state.finished.values():
            gradings = self._writer.state.gradings[entry.id]
            if entry.score is not None:
                continue
            if self._retry.grades_again(
                entry.outcome, entry.attribution, regradable=entry.regradable, gradings=gradings
            ):
                redo[entry.id] = entry
            elif self._is_run_again(entry, regradable=entry.regradable):
                redo[entry.id] = None
        return redo

    def _is_run_again(self, entry: Finished, *, regradable: bool) -> bool:
        return self._retry.resumes(entry.outcome, entry.attribution, regradable=regradable, tries=entry.tries)

    async def _wanted(self, task_id: str) -> list[Planned]:
        """What the sampler wants of a task of which nothing is open."""
        if self._pool.open(task_id) or task_id in self._writer.state.dropped:
            return []
        decision = self._sampler.next(self._pool.entries(task_id))
        if isinstance(decision, Drop):
            await self._writer.dropped(task_id, reason=decision.reason)
        if not isinstance(decision, More):
            return []
        first = self._pool.planned(task_id)
        items = [self._plan(self._tasks[task_id], first + number) for number in range(decision.count)]
        for item in items:
            self._pool.plan(item)
        return items

    def _plan(self, task: Task, attempt: int) -> Planned:
        parts = self._parts
        name = rollout_id(
            taskset=parts.taskset.name,
            task=task.id,
            harness=parts.harness.name,
            model=parts.model_text,
            attempt=attempt,
        )
        return Planned(
            id=name,
            task=task.id,
            attempt=attempt,
            seed=rollout_seed(self._seed, task=task.id, attempt=attempt),
            tags=task.tags,
            digest=task.digest,
            prompt=digest(task.instruction)[:16],
        )

    def _issue(self, planned: Planned, *, graded: Finished | None = None) -> None:
        before = self._writer.state.tries.get(planned.id, 0)
        self._open += 1
        self._ready.put_nowait(_Ticket(planned=planned, tries=before + 1, session_tries=1, graded=graded))

    async def _work(self) -> None:
        while True:
            ticket = await self._ready.get()
            async with self._slots.held():
                if not self._stop.requested:
                    await self._take(ticket)
            if self._stop.requested:
                await asyncio.Event().wait()  # nothing new starts; the supervisor ends this worker

    async def _take(self, ticket: _Ticket) -> None:
        self._busy += 1
        try:
            if ticket.graded is None:
                await self._one(ticket)
            else:
                await self._one_graded(ticket, ticket.graded)
        finally:
            self._busy -= 1
            self._changed.set()

    async def _one(self, ticket: _Ticket) -> None:
        planned = ticket.planned
        await self._writer.started(planned.id, tries=ticket.tries)
        self._bus.emit(
            RolloutStarted(rollout=planned.id, task=planned.task, attempt=planned.attempt, at=time.time())
        )
        recorded: list[Rollout] = []
        stopped: list[Rollout] = []

        async def record(rollout: Rollout) -> None:
            await self._record(rollout, ticket)
            recorded.append(rollout)

        task = asyncio.create_task(
            run_rollout(
                self._tasks[planned.task],
                self._parts,
                attempt=planned.attempt,
                tries=ticket.tries,
                seed=planned.seed,
                emit=self._bus.emit,
                record=record,
                on_cancelled=stopped.append,
            )
        )
        self._running.add(task)
        if self._stop.requested:
            task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            if not recorded:
                await self._settle_cancelled(planned.id, stopped)
                return
            _go_on_unless_cancelled()
        finally:
            self._running.discard(task)
        await self._settle(recorded[0], ticket)

    async def _one_graded(self, ticket: _Ticket, entry: Finished) -> None:
        """Grade a stored rollout again; when that cannot be, run it again or leave it as it is."""
        task = asyncio.create_task(self._grade_again(ticket, entry))
        self._running.add(task)
        if self._stop.requested:
            task.cancel()
        try:
            rollout = await task
        except (RegradeRefused, RecordCorrupt) as error:
            _LOG.warning("rollout %s is not graded again: %s", entry.id, error)
            if self._is_run_again(entry, regradable=False):
                self._ready.put_nowait(replace(ticket, graded=None))
            else:
                self._pool.add(entry)
                await self._go_on(entry.task)
                self._open -= 1
            return
        except asyncio.CancelledError:
            _go_on_unless_cancelled()
            return  # its record stays as it was, and a resumed run grades it
        finally:
            self._running.discard(task)
        await self._report(rollout)

    async def _grade_again(self, ticket: _Ticket, entry: Finished) -> Rollout:
        stored = await self._writer.load(entry)
        planned, now = ticket.planned, time.time()
        self._bus.emit(RolloutStarted(rollout=entry.id, task=planned.task, attempt=planned.attempt, at=now))
        self._bus.emit(PhaseStarted(rollout=entry.id, phase=Phase.VERIFY, at=now))
        rollout = await regrade(stored, self._parts)
        await unbroken(self._finish(rollout))
        return rollout

    async def _finish(self, rollout: Rollout) -> None:
        self._pool.add(await self._writer.finish(rollout))
        self._tell_finished(rollout, again=False)

    async def _record(self, rollout: Rollout, ticket: _Ticket) -> None:
        again = self._is_retried(rollout, ticket)
        if not again:
            await self._finish(rollout)
            return
        await self._writer.retried(rollout)
        self._tell_finished(rollout, again=True)

    def _tell_finished(self, rollout: Rollout, *, again: bool) -> None:
        self._bus.emit(
            RolloutFinished(
                rollout=rollout.id,
                task=rollout.task.id,
                attempt=rollout.attempt,
                outcome=rollout.outcome,
                attribution=rollout.attribution,
                score=rollout.score,
                usage=rollout.usage,
                cost_usd=rollout.cost_usd,
                will_retry=again,
                at=time.time(),
            )
        )

    def _is_retried(self, rollout: Rollout, ticket: _Ticket) -> bool:
        return ticket.tries < self._retry.total and self._retry.allows(rollout, tries=ticket.session_tries)

    async def _settle(self, rollout: Rollout, ticket: _Ticket) -> None:
        if self._is_retried(rollout, ticket):
            again = replace(ticket, tries=ticket.tries + 1, session_tries=ticket.session_tries + 1)
            pause = self._retry.pause_s(ticket.session_tries, seed=ticket.planned.seed)
            asyncio.get_running_loop().call_later(pause, self._ready.put_nowait, again)
            return
        await self._report(rollout)

    async def _report(self, rollout: Rollout) -> None:
        await self._go_on(rollout.task.id)
        await self._results.put(rollout)
        self._open -= 1
        if self._open:
            self._futility.check(rollout, left=self._open)

    async def _go_on(self, task: str) -> None:
        """One rollout of a task is over: plan what the sampler wants now."""
        items = await self._wanted(task)
        await self._writer.plan(items)
        for item in items:
            self._issue(item)

    async def _settle_cancelled(self, name: str, stopped: list[Rollout]) -> None:
        await self._writer.cancelled(name, stopped[0] if stopped else None)
        _go_on_unless_cancelled()
        for record in stopped:
            await self._results.put(record)

    async def _end_when_done(self) -> None:
        while self._open:
            self._changed.clear()
            await self._changed.wait()

    async def _end_when_stopped(self) -> None:
        """Cancel what runs at the first request, its tear-down at the second; end when nothing runs."""
        await self._stop.once()
        self._cancel_running()
        impatient = asyncio.create_task(self._cancel_when_asked_twice())
        try:
            while self._busy:
                self._changed.clear()
                await self._changed.wait()
        finally:
            impatient.cancel()

    async def _cancel_when_asked_twice(self) -> None:
        await self._stop.twice()
        self._cancel_running()

    def _cancel_running(self) -> None:
        for task in self._running:
            task.cancel()


def _go_on_unless_cancelled() -> None:
    """Tell a rollout that was cancelled from a worker that was: the latter must end."""
    current = asyncio.current_task()
    if current is not None and current.cancelling():
        raise asyncio.CancelledError
