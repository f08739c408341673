"""One rollout: create, prepare, agent, collect, verify, record, close. A failed rollout is data."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

from orchard_core.errors import (
    BudgetExceeded,
    DeadlineExceeded,
    HarnessError,
    ModelError,
    OrchardError,
    SandboxGone,
)
from orchard_core.gateway.contract import SessionContext
from orchard_core.harness.contract import mounts_of
from orchard_core.reward.collect import collect
from orchard_core.rollout.deadline import deadline, within
from orchard_core.rollout.ending import name_death, name_exhausted, name_model, name_stop
from orchard_core.rollout.fault import name_fault
from orchard_core.rollout.fitting import FittedSpec, check_known_tools, check_limits, check_tools, fit_spec
from orchard_core.rollout.grading import VERIFIED, grade
from orchard_core.rollout.harness_files import keep_files
from orchard_core.rollout.identity import rollout_id
from orchard_core.rollout.observed_sandbox import ObservedSandbox
from orchard_core.rollout.observing import LastResults, observed_tools
from orchard_core.rollout.parts import RolloutParts
from orchard_core.rollout.progress import Progress
from orchard_core.rollout.session import ModelSession
from orchard_core.rollout.tool_ending import ToolEnding
from orchard_core.sandbox.contract import Sandbox
from orchard_core.sandbox.unbroken import unbroken
from orchard_core.tasks.contract import Tool
from orchard_core.types.events import CallFinished, Event, PhaseStarted
from orchard_core.types.harness import HarnessResult, Limits
from orchard_core.types.model import ModelCall
from orchard_core.types.rollout import (
    Attribution,
    Outcome,
    Phase,
    PhaseTiming,
    Rollout,
)
from orchard_core.types.sandbox import SandboxSpec
from orchard_core.types.task import Task
from orchard_core.types.trajectory import Trajectory

_LOG = logging.getLogger("orchard.rollout")
_PASSED_ON = {Outcome.HARNESS_FAILED, Outcome.MODEL_FAILED}
Record = Callable[[Rollout], Coroutine[Any, Any, None]]
"""Makes a rollout durable; awaited before anything is torn down."""


async def run_rollout(
    task: Task,
    parts: RolloutParts,
    *,
    attempt: int = 0,
    tries: int = 1,
    seed: int = 0,
    emit: Callable[[Event], None] = lambda _event: None,
    record: Record | None = None,
    on_cancelled: Callable[[Rollout], None] = lambda _rollout: None,
) -> Rollout:
    """Run one task once, whatever happens, and give its record.

    Raises ConfigError and SandboxUnsupported when the parts cannot work together; StoreError from `record`.
    When it is cancelled, everything it started is ended before CancelledError goes on, and `on_cancelled`
    is given the record of what was done until then, with outcome `cancelled`.
    """
    seen = Progress(started_at=time.time())
    fitted = await _fitted(task, parts, seen)
    one = _Attempt(task, parts, fitted, seen, attempt=attempt, tries=tries, seed=seed, emit=emit)
    try:
        rollout = await one.work()
        if record is not None:
            emit(PhaseStarted(rollout=one.id, phase=Phase.RECORD, at=time.time()))
            await unbroken(record(rollout))
    except asyncio.CancelledError:
        on_cancelled(one.cancelled())
        raise
    finally:
        await one.close()
    return rollout


async def _fitted(task: Task, parts: RolloutParts, seen: Progress) -> FittedSpec:
    can = await parts.provider.capabilities()
    try:
        spec = parts.taskset.spec(task)
    except Exception as error:  # noqa: BLE001 - border: a task set may raise anything about one broken task
        seen.fault = name_fault(error, Phase.PREPARE, elapsed_s=0.0)
        return FittedSpec(spec=SandboxSpec(), fallback=False)
    check_limits(parts.harness, parts.limits)
    check_known_tools(task, parts.taskset, parts.harness)
    return fit_spec(task, spec, can, parts.settings, await mounts_of(parts.harness))


class _Attempt:
    """The state of one rollout on its way."""

    def __init__(
        self,
        task: Task,
        parts: RolloutParts,
        fitted: FittedSpec,
        seen: Progress,
        *,
        attempt: int,
        tries: int,
        seed: int,
        emit: Callable[[Event], None],
    ) -> None:
        self.id = rollout_id(
            taskset=parts.taskset.name,
            task=task.id,
            harness=parts.harness.name,
            model=parts.model_text,
            attempt=attempt,
        )
        self._task = task
        self._parts = parts
        self._fitted = fitted
        self._attempt = attempt
        self._tries = tries
        self._seed = seed
        self._emit = emit
        self._created_at = 0.0
        self._sandbox: Sandbox | None = None
        self._closed = False
        self._exhausted: BudgetExceeded | None = None
        self._last_error: ModelError | None = None
        self._results = LastResults()
        self._tool_ending = ToolEnding()
        self._seen = seen

    async def work(self) -> Rollout:
        """Every phase up to verification."""
        if self._seen.fault is None:
            await self._create()
        if self._sandbox is not None and self._seen.fault is None:
            await self._inside(self._sandbox)
        if self._seen.result is not None:
            await self._keep_harness_files(self._seen.result)
        rollout = self.record()
        if rollout.outcome not in VERIFIED or self._sandbox is None:
            return rollout
        return await self._verified(rollout, self._sandbox)

    async def close(self) -> None:
        """Destroy the sandbox; never raises but when it is cancelled."""
        self._closed = True
        sandbox, self._sandbox = self._sandbox, None
        if sandbox is None:
            return
        limit = self._parts.settings.phases.close_s
        self._emit(PhaseStarted(rollout=self.id, phase=Phase.CLOSE, at=time.time()))
        try:
            await within("close", limit, sandbox.close(), grace_s=1.0)
        except Exception:  # noqa: BLE001 - border: the record is safe, and a provider's reaper takes what is left
            _LOG.warning("sandbox %s did not close", sandbox.id, exc_info=True)

    def record(self) -> Rollout:
        """What was seen until now, as a record."""
        return self._seen.record(
            self._task,
            self._parts,
            self._fitted,
            id=self.id,
            attempt=self._attempt,
            tries=self._tries,
            seed=self._seed,
        )

    def cancelled(self) -> Rollout:
        """The record of what was done until the rollout was stopped."""
        update = {"outcome": Outcome.CANCELLED, "attribution": Attribution.USER, "error": None}
        return self.record().model_copy(update=update)

    @asynccontextmanager
    async def _phase(self, phase: Phase) -> AsyncIterator[None]:
        """The border: whatever a phase raises is named and kept; only the first one decides."""
        self._emit(PhaseStarted(rollout=self.id, phase=phase, at=time.time()))
        at, began = time.time(), time.monotonic()
        try:
            yield
        except (Exception, SystemExit) as error:  # noqa: BLE001 - border: fault.py names what plugins raise
            self._blame(error, phase, began)
        finally:
            spent = time.monotonic() - began
            self._seen.timings.append(PhaseTiming(phase=phase, started_at=at, duration_s=spent))

    def _blame(self, error: Exception | SystemExit, phase: Phase, began: float) -> None:
        if self._seen.fault is None or self._seen.fault.outcome in VERIFIED:
            self._seen.fault = name_fault(error, phase, elapsed_s=time.monotonic() - began)

    async def _create(self) -> None:
        settings = self._parts.settings
        if settings.jitter_s > 0:
            draw = random.Random(f"{self._seed}:{self._tries}")  # noqa: S311 - jitter, no secret
            await asyncio.sleep(draw.uniform(0, settings.jitter_s))
        async with self._phase(Phase.CREATE):
            limit, grace = settings.phases.create_s, settings.phases.cancel_s
            await within("create", limit, self._made(), grace_s=grace)

    async def _made(self) -> None:
        labels = {**self._fitted.spec.labels, "orchard.rollout": self.id, "orchard.task": self._task.id}
        spec = self._fitted.spec.model_copy(update={"labels": labels})
        sandbox = await self._parts.provider.create(spec)
        self._created_at = time.time()
        self._sandbox = sandbox
        if self._closed:  # nobody waits for it any more
            await sandbox.close()

    async def _inside(self, sandbox: Sandbox) -> None:
        """Everything that happens while the task set's session is open, then what is left is taken out."""
        phases = self._parts.settings.phases
        stack = AsyncExitStack()
        try:
            tools: Sequence[Tool] = ()
            async with self._phase(Phase.PREPARE), deadline("prepare", phases.prepare_s):
                session = self._parts.taskset.session(self._task, sandbox)
                tools = await stack.enter_async_context(session)
            if self._seen.fault is None:
                check_tools(self._parts.harness, [tool.name for tool in tools])
                await self._agent(sandbox, tools)
        finally:
            # Services end first, so that what they write at their end is part of the artifacts.
            await self._leave(stack)
        if self._seen.fault is None or self._seen.fault.outcome in VERIFIED:
            async with self._phase(Phase.COLLECT):
                work = collect(
                    sandbox,
                    self._task.artifacts,
                    self._parts.blobs,
                    limit=self._parts.settings.max_artifact_bytes,
                )
                self._seen.artifacts = await within(
                    "collect", phases.collect_s, work, grace_s=phases.cancel_s
                )

    async def _leave(self, stack: AsyncExitStack) -> None:
        try:
            async with deadline("leaving the task's session", self._parts.settings.phases.close_s):
                await stack.aclose()
        except Exception:  # noqa: BLE001 - border: a task's tear-down does not change what the agent did
            _LOG.warning("rollout %s: the task's session did not end cleanly", self.id, exc_info=True)

    async def _agent(self, sandbox: Sandbox, tools: Sequence[Tool]) -> None:
        parts, task = self._parts, self._task
        given = parts.limits.wall_clock_s
        wall = task.agent_timeout_s if given is None else min(task.agent_timeout_s, given)
        limits = parts.limits.model_copy(update={"wall_clock_s": wall})
        context = SessionContext(
            rollout=self.id, task=task, solution=lambda: parts.taskset.solution(task), seed=self._seed
        )
        # Outside the border: a model that cannot be served at all is the user's to mend.
        noted = observed_tools(tools, self._results, self._tool_ending)
        session = await parts.gateway.open_session(
            parts.model, context, limits=limits, on_call=self._on_call, tools=noted
        )
        began = time.monotonic()
        async with self._phase(Phase.AGENT):
            self._seen.agent_ran = True
            await self._drive(sandbox, noted, session, limits, wall)
        self._settle(time.monotonic() - began)
        await self._check_alive(sandbox, time.monotonic() - began)

    async def _drive(
        self, sandbox: Sandbox, tools: Sequence[Tool], session: ModelSession, limits: Limits, wall_s: float
    ) -> None:
        harness, phases = self._parts.harness, self._parts.settings.phases
        seen = ObservedSandbox(sandbox, self._results)
        run = harness.run(self._task, seen, session.endpoint, tools, limits)
        try:
            result: object = await within(
                "agent",
                wall_s,
                self._tool_ending.followed(
                    run, answers=lambda: _answers(session.trajectory()), limits=phases
                ),
                grace_s=phases.cancel_s,
                extra_s=lambda: session.waited_s,
            )
        finally:
            # Closing ends calls in flight, which must not pass for the error of the newest call.
            self._exhausted, self._last_error = session.exhausted, session.last_error
            self._seen.trajectory = self._results.kept_in(await session.close())
        if not isinstance(result, HarnessResult):
            raise HarnessError(f"harness {harness.name} gave no HarnessResult", hint="see its contract")
        self._seen.result = result

    def _settle(self, elapsed_s: float) -> None:
        """Let what the gateway knows correct what the harness said."""
        exhausted, last = self._exhausted, self._last_error
        if self._seen.result is not None:
            self._seen.fault = name_stop(self._seen.result, exhausted, last, elapsed_s=elapsed_s)
        elif self._seen.fault is not None and self._seen.fault.outcome in _PASSED_ON:
            # A harness often wraps the client's error into one of its own, and a refusal into a model's.
            if exhausted is not None:
                self._seen.fault = name_exhausted(exhausted, elapsed_s=elapsed_s)
            elif last is not None:
                self._seen.fault = name_model(last, elapsed_s=elapsed_s)

    async def _check_alive(self, sandbox: Sandbox, elapsed_s: float) -> None:
        phases = self._parts.settings.phases
        with suppress(DeadlineExceeded):
            if await within("liveness", 10.0, sandbox.alive(), grace_s=1.0):
                return
        answers = _answers(self._seen.trajectory)
        work = name_death(
            sandbox, self._parts.provider, created_at=self._created_at, answers=answers, elapsed_s=elapsed_s
        )
        try:
            self._seen.fault = await within("probe", phases.probe_s, work, grace_s=phases.cancel_s)
        except OrchardError as error:
            gone = SandboxGone(f"sandbox {sandbox.id} stopped answering; {error.message}")
            self._seen.fault = name_fault(gone, Phase.AGENT, elapsed_s=elapsed_s)

    async def _keep_harness_files(self, result: HarnessResult) -> None:
        limit = self._parts.settings.max_artifact_bytes
        with suppress(OrchardError):
            self._seen.artifacts += await keep_files(result.artifacts, self._parts.blobs, limit=limit)

    async def _verified(self, rollout: Rollout, sandbox: Sandbox) -> Rollout:
        began, at = time.monotonic(), time.time()
        self._emit(PhaseStarted(rollout=self.id, phase=Phase.VERIFY, at=at))
        graded = await grade(rollout, self._parts, own=sandbox)
        timing = PhaseTiming(phase=Phase.VERIFY, started_at=at, duration_s=time.monotonic() - began)
        update = {"timings": (*rollout.timings, timing), "finished_at": time.time()}
        return graded.model_copy(update=update)

    def _on_call(self, call: ModelCall) -> None:
        self._results.answered(call)
        self._emit(
            CallFinished(
                rollout=self.id, index=call.index, usage=call.usage, cost_usd=call.cost_usd, at=time.time()
            )
        )


def _answers(trajectory: Trajectory) -> int:
    return sum(call.response is not None for call in trajectory.calls)
