"""Are the tasks sound? Each is played with its known solution and with an agent that does nothing.

No model and no harness take part: the solution's commands go straight to the sandbox, and the result is
verified the way a rollout's is.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from orchard_core.errors import (
    OrchardError,
    VerifierFailed,
)
from orchard_core.reward.blobs import MemoryBlobs
from orchard_core.reward.collect import collect
from orchard_core.reward.contract import Evidence
from orchard_core.reward.script import cut
from orchard_core.sandbox.contract import Sandbox, SandboxProvider
from orchard_core.tasks.contract import TaskSet
from orchard_core.types.base import Record
from orchard_core.types.harness import HarnessResult, StopReason
from orchard_core.types.model import ModelEndpoint
from orchard_core.types.rollout import Outcome
from orchard_core.types.sandbox import SandboxSpec
from orchard_core.types.task import Solution, Task, VerifyIn
from orchard_core.types.trajectory import Trajectory


class Verdict(StrEnum):
    """What the doctor says of a task."""

    OK = "ok"
    """The solution passes every time, doing nothing does not."""
    NO_SOLUTION = "no_solution"
    """Doing nothing does not pass; there is no solution to try."""
    ORACLE_FAILED = "oracle_failed"
    """The known solution does not pass."""
    FLAKY = "flaky"
    """The known solution passes sometimes."""
    NOOP_PASSED = "noop_passed"
    """Doing nothing passes."""
    BROKEN = "broken"
    """It cannot be run or verified at all."""


GRACE_S = 60.0
"""What a verifier's sandbox may take to come up, over the task's own limit, seconds."""
ARTIFACT_LIMIT = 512 << 20
"""Largest artifact, bytes."""
SOUND = frozenset({Verdict.OK, Verdict.NO_SOLUTION})
"""Verdicts that do not put a task on the quarantine list."""


class Attempt(Record):
    """One play of a task."""

    score: float | None
    """Its score; None when it could not be had."""
    reason: str
    """What the verifier or the error said, with the first failed command in front when one failed."""
    error: str = ""
    """Class name of the error that kept the score away."""
    duration_s: float
    """From creation of the sandbox to its score, seconds."""


class Diagnosis(Record):
    """What was found out about one task."""

    task_id: str
    """The task."""
    digest: str
    """Its content hash, so that a verdict is not carried over to a task that has changed."""
    verdict: Verdict
    """The verdict."""
    reason: str
    """Why, for people; empty for `ok`."""
    oracle: tuple[Attempt, ...] = ()
    """Plays of the known solution."""
    noop: Attempt | None = None
    """The play that did nothing."""


class Quarantine(Record):
    """Tasks that should be left out, and why."""

    taskset: str
    """The task set as the user named it."""
    tasks: tuple[Diagnosis, ...]
    """Every examined task whose verdict is not sound."""


async def examine(
    taskset: TaskSet,
    provider: SandboxProvider,
    *,
    concurrency: int = 4,
    repeats: int = 1,
    threshold: float = 1.0,
    tasks: Iterable[Task] | None = None,
) -> AsyncGenerator[Diagnosis, None]:
    """Diagnose each task (or each of `tasks`), in the order in which they finish.

    `repeats` plays of the solution tell a flaky task from a sound one; a score of at least `threshold`
    passes. A task that cannot be run is a diagnosis, never an exception. Leaving the iteration early ends
    what is in flight. Raises SandboxUnavailable, before any task, when the host gives no sandbox at all.
    """
    await provider.capabilities()
    doctor = _Doctor(taskset, provider, repeats, threshold)
    gate = asyncio.Semaphore(concurrency)

    async def one(task: Task) -> Diagnosis:
        async with gate:
            return await doctor.diagnose(task)

    running = [asyncio.create_task(one(task)) for task in (taskset.tasks() if tasks is None else tasks)]
    try:
        for finished in asyncio.as_completed(running):
            yield await finished
    finally:
        for each in running:
            each.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def attempt(
    taskset: TaskSet, provider: SandboxProvider, task: Task, solution: Solution | None = None
) -> Attempt:
    """Play a task once with these commands (None: do nothing) and verify it. Never raises for a task that
    cannot be run or verified: the attempt then has no score and names the error."""
    started = time.monotonic()
    error = ""
    try:
        score, reason = await _play(taskset, provider, task, solution)
    except Exception as failure:  # noqa: BLE001 - border: a task set or reward may raise anything about one task
        score, reason, error = None, _words(failure), type(failure).__name__
    return Attempt(score=score, reason=reason, error=error, duration_s=time.monotonic() - started)


def quarantine(taskset: str, diagnoses: Iterable[Diagnosis]) -> Quarantine:
    """The list of tasks to leave out, by id."""
    unsound = (each for each in diagnoses if each.verdict not in SOUND)
    return Quarantine(taskset=taskset, tasks=tuple(sorted(unsound, key=lambda each: each.task_id)))


def write_quarantine(path: Path, listed: Quarantine) -> None:
    """As JSON where the name ends in .json, else as text: an id, a tab and the reason a line."""
    if path.suffix == ".json":
        path.write_text(listed.model_dump_json(indent=2) + "\n", encoding="utf-8")
        return
    rows = [f"{each.task_id}\t{each.verdict}: {' '.join(each.reason.split())}\n" for each in listed.tasks]
    head = f"# {listed.taskset}: tasks to leave out, with the reason\n"
    path.write_text(head + "".join(rows), encoding="utf-8")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Grading:
    """What the doctor lets a reward use: sandboxes, but no judge."""

    provider: SandboxProvider
    own: Sandbox | None
    deadline_s: float

    def fresh(self, spec: SandboxSpec) -> AbstractAsyncContextManager[Sandbox]:
        return _Fresh(self.provider, spec)

    def judge(self, name: str) -> AbstractAsyncContextManager[ModelEndpoint]:
        raise VerifierFailed(
            f"the reward asks for the judge {name!r}, and the doctor has no model",
            hint="examine such a task with `orchard run` and the models oracle and scripted",
        )


class _Fresh(AbstractAsyncContextManager[Sandbox]):
    """A sandbox that lives as long as the block."""

    def __init__(self, provider: SandboxProvider, spec: SandboxSpec):
        self._provider = provider
        self._spec = spec

    async def __aenter__(self) -> Sandbox:
        self._sandbox = await self._provider.create(self._spec)
        return self._sandbox

    async def __aexit__(self, *exc: object) -> None:
        await self._sandbox.close()


@dataclass(frozen=True, slots=True)
class _Doctor:
    taskset: TaskSet
    provider: SandboxProvider
    repeats: int
    threshold: float

    async def diagnose(self, task: Task) -> Diagnosis:
        noop = await attempt(self.taskset, self.provider, task)
        try:
            solution = self.taskset.solution(task)
        except Exception as error:  # noqa: BLE001 - border: as in `attempt`
            return _diagnosis(task, Verdict.BROKEN, _words(error), (), noop)
        plays = [
            await attempt(self.taskset, self.provider, task, solution)
            for _ in range(self.repeats if solution else 0)
        ]
        verdict, reason = self._judge(noop, plays)
        return _diagnosis(task, verdict, reason, plays, noop)

    def _judge(self, noop: Attempt, oracle: Sequence[Attempt]) -> tuple[Verdict, str]:
        for play in (noop, *oracle):
            if play.score is None:
                return Verdict.BROKEN, f"{play.error}: {play.reason}"
        if self._passes(noop):
            return Verdict.NOOP_PASSED, f"an agent that does nothing scores {noop.score:g}"
        failed = [play for play in oracle if not self._passes(play)]
        if failed and len(failed) < len(oracle):
            passed = len(oracle) - len(failed)
            return Verdict.FLAKY, f"the solution passes {passed} of {len(oracle)} times: {failed[0].reason}"
        if failed:
            return Verdict.ORACLE_FAILED, failed[0].reason
        return (Verdict.OK, "") if oracle else (Verdict.NO_SOLUTION, "there is no known solution")

    def _passes(self, play: Attempt) -> bool:
        return play.score is not None and play.score >= self.threshold


def _diagnosis(
    task: Task, verdict: Verdict, reason: str, oracle: Sequence[Attempt], noop: Attempt
) -> Diagnosis:
    return Diagnosis(
        task_id=task.id, digest=task.digest, verdict=verdict, reason=reason, oracle=tuple(oracle), noop=noop
    )


async def _play(
    taskset: TaskSet, provider: SandboxProvider, task: Task, solution: Solution | None
) -> tuple[float | None, str]:
    async with await provider.create(taskset.spec(task)) as sandbox:
        async with taskset.session(task, sandbox):
            failed = await _run(task, solution, sandbox) if solution else ""
        blobs = MemoryBlobs()
        artifacts = await collect(sandbox, task.artifacts, blobs, limit=ARTIFACT_LIMIT)
        own = sandbox if task.verify_in is VerifyIn.SAME_SANDBOX else None
        if own is not None:
            await own.reset_processes()
        evidence = Evidence(
            task=task,
            trajectory=Trajectory(),
            outcome=Outcome.COMPLETED,
            result=HarnessResult(stop=StopReason.SUBMITTED, answer=solution.answer if solution else None),
            artifacts={artifact.path: artifact for artifact in artifacts},
            blobs=blobs,
        )
        grading = _Grading(provider=provider, own=own, deadline_s=task.verifier_timeout_s + GRACE_S)
        result = await taskset.reward(task).score(evidence, grading)
    return result.score, "\n".join(part for part in (failed, result.reason, cut(result.log, 2000)) if part)


async def _run(task: Task, solution: Solution, sandbox: Sandbox) -> str:
    """Play every step; what is told is the first one that failed, if one did."""
    first = ""
    end = time.monotonic() + task.agent_timeout_s
    for number, step in enumerate(solution.steps, 1):
        left = max(end - time.monotonic(), 0.1)
        result = await sandbox.exec(step.command, cwd=task.workdir, timeout=left)
        if result.ok or first:
            continue
        how = "ran out of time" if result.timed_out else f"exited with {result.exit_code}"
        first = f"step {number} of {len(solution.steps)} {how}: {cut(result.text.strip(), 400)}"
    return first


def _words(error: Exception) -> str:
    if not isinstance(error, OrchardError):
        return str(error)
    return f"{error.message} ({error.hint})" if error.hint else error.message
