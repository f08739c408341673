"""Commands as jobs of v1: each a run of the sandbox's agent, which alone knows how it stands.

A job's id names its sandbox, so any process that serves the sandbox answers for it. One sandbox's jobs run
one after the other, in a lane of its agent: no restart of the service loses, repeats or reorders one.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from orchard_core import (
    AgentClient,
    ExecError,
    ExecForgotten,
    ExecResult,
    RunTold,
    SandboxError,
    SandboxUnavailable,
)
from orchard_env.service.ended import EndedJobs
from orchard_env.service.entry import Entry
from orchard_env.service.faults import JobUnknown, SandboxUnknown
from orchard_env.service.fleet import Fleet
from orchard_env.service.job import Job
from orchard_env.service.seams import Admission, Meters, Tenant, Work

_RUN = re.compile(r"[A-Za-z0-9_-]{1,100}")
"""What the id of a run looks like."""

_NOTE_MAX = 8 << 10

LANE = "v1"
"""The lane in which one sandbox's jobs take turns."""

_POLL_S = 30.0
"""One question to the agent waits so long at most."""

_FIRST_S = 1.0
"""So long the first question holds the caller's place in the service."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A command to run."""

    run_id: str
    """Made by the client or for it; the same one again attaches to the same run."""
    command: str | Sequence[str]
    """What runs: a shell's string, or argv."""
    note: str | Sequence[str]
    """The command as the client wrote it."""
    timeout_s: float | None = None
    """It is killed after so many seconds."""
    cwd: str | None = None
    """Where; None: the sandbox's working directory."""
    env: Mapping[str, str] | None = None
    """Over the sandbox's own environment."""


class Jobs:
    """The jobs of every sandbox of a fleet."""

    def __init__(
        self, fleet: Fleet, *, admission: Admission, meters: Meters, output_limit: int, remember: int
    ) -> None:
        """`output_limit`: bytes of each output of a job; `remember`: of all ended jobs that are kept here."""
        self._fleet = fleet
        self._admission = admission
        self._meters = meters
        self._output_limit = output_limit
        self._ended = EndedJobs(remember)

    async def submit(self, entry: Entry, order: Order, tenant: Tenant, *, wait_s: float) -> Job:
        """Start it, or attach to it, and tell how it stands after at most `wait_s` seconds. Cancelling leaves
        it to itself. Raises ExecError for what cannot be started, and what `Entry.sandbox` raises."""
        began = time.monotonic()
        until = began + wait_s
        async with entry.lent() as client:
            async with self._admission.enter(tenant, Work.EXEC):
                told = await self._begin(client, order, min(wait_s, _FIRST_S))
            while self._waits(told, until):
                told = await self._ask(client, told.id, until)
        return self._job(entry, told, order.note, overhead_s=overhead(told, time.monotonic() - began))

    async def _begin(self, client: AgentClient, order: Order, wait_s: float) -> RunTold:
        return await client.begin(
            order.command,
            cwd=order.cwd,
            env=order.env,
            timeout=order.timeout_s,
            output_limit=self._output_limit,
            run_id=order.run_id,
            lane=LANE,
            note=_noted(order.note),
            wait_s=wait_s,
        )

    async def _ask(self, client: AgentClient, run_id: str, until: float) -> RunTold:
        wait_s = max(0.0, min(_POLL_S, until - time.monotonic()))
        process, told = client.process(run_id), None
        if wait_s and not self._fleet.draining:
            told = await self._fleet.unless_draining(process.told(wait_s))
        return told or await process.told()

    def _waits(self, told: RunTold, until: float) -> bool:
        """A service that ends lets its waiting clients go at once: what they wait for goes on, and another
        process answers for it."""
        return told.open and not self._fleet.draining and time.monotonic() < until

    def _job(
        self,
        entry: Entry,
        told: RunTold,
        note: str | Sequence[str] | None,
        *,
        overhead_s: float | None = None,
    ) -> Job:
        job_id = f"{entry.id}.{told.id}"
        known = note if note is not None else _read(told.note)
        job = Job(id=job_id, sandbox_id=entry.id, tenant=entry.tenant, command=known, told=told)
        if self._ended.keep(job, entry.serial) and told.result is not None:
            self._meters.executed(
                entry.tenant, outcome_of(told.result), told.result.duration_s, overhead_s, run=job_id
            )
        return job

    async def _remembered(self, job_id: str, tenant: str | None) -> Job | None:
        """A job of this tenant that ended here, unless its sandbox's name is by now another's. For a
        stranger's nothing is done that is not done for an id that nobody has."""
        known = self._ended.get(job_id)
        if known is None or tenant not in (None, known.job.tenant):
            return None
        job = known.job
        try:
            current = await self._fleet.get(job.sandbox_id, tenant=None)
        except (SandboxUnknown, SandboxUnavailable):
            return job
        return job if current.serial == known.home or current.fault is not None else None

    async def get(self, job_id: str, *, tenant: str | None, wait_s: float = 0.0) -> Job:
        """How it stands, after waiting at most `wait_s` seconds for its end. Raises JobUnknown, and why its
        sandbox is no more."""
        ended = await self._remembered(job_id, tenant)
        if ended is not None:
            return ended
        sandbox_id, dot, run_id = job_id.partition(".")
        if not dot or not _RUN.fullmatch(run_id):
            raise _unknown(job_id)
        try:
            entry = await self._fleet.get(sandbox_id, tenant=tenant)
        except SandboxUnknown:
            raise _unknown(job_id) from None
        until = time.monotonic() + wait_s
        try:
            async with entry.lent() as client:
                told = await self._ask(client, run_id, until)
                while self._waits(told, until):
                    told = await self._ask(client, run_id, until)
        except (ExecForgotten, ExecError) as error:
            raise _unknown(job_id) from error
        return self._job(entry, told, None)

    async def kill(self, job_id: str, *, tenant: str | None) -> Job:
        """End it, or take it out of the queue. Raises as `get`."""
        job = await self.get(job_id, tenant=tenant)
        if job.told.open:
            entry = await self._fleet.get(job.sandbox_id, tenant=tenant)
            async with entry.lent() as client:
                await client.process(job.told.id).kill()
        return await self.get(job_id, tenant=tenant, wait_s=5.0)

    async def open_jobs(self) -> int:
        """Commands that run in the sandboxes that this process knows of, as far as their agents answer."""
        counts = await asyncio.gather(*(self._open_in(entry) for entry in self._fleet.known()))
        return sum(counts)

    async def _open_in(self, entry: Entry) -> int:
        try:
            async with asyncio.timeout(2.0):
                async with entry.lent() as client:
                    return int((await client.health()).running)
        except (SandboxError, TimeoutError):
            return 0


def _noted(command: str | Sequence[str]) -> str | None:
    """The command as the sandbox keeps it for later; None where it is too long for that."""
    text = orjson.dumps(command if isinstance(command, str) else list(command)).decode()
    return text if len(text.encode()) <= _NOTE_MAX else None


def _read(note: str) -> str | list[str] | None:
    try:
        found = orjson.loads(note) if note else None
    except ValueError:
        return None  # another program's note
    return found if isinstance(found, str | list) else None


def overhead(told: RunTold, seconds: float) -> float | None:
    """What of a request's seconds was neither the command's own time nor its wait for others in its lane;
    None when the command has not ended, or was begun by an earlier request."""
    result = told.result
    if result is None or told.created is None or told.started is None:
        return None
    rest = seconds - result.duration_s - max(0.0, told.started - told.created)
    return rest if rest >= 0 else None


def outcome_of(result: ExecResult) -> str:
    """`succeeded`, `failed` or `timed_out`, as metrics tell it."""
    if result.timed_out:
        return "timed_out"
    return "succeeded" if result.exit_code == 0 else "failed"


def _unknown(job_id: str) -> JobUnknown:
    return JobUnknown(
        f"there is no job {job_id[:160]!r}",
        hint="its sandbox may be gone; a sandbox remembers its last 256 jobs for 15 minutes after their end",
    )
