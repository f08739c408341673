"""Commands: one call, in the background, attached to, told of."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from orchard_core import AgentClient, ExecError, RunTold, understood
from orchard_env.service.agent_words import agent_words
from orchard_env.service.entry import Entry
from orchard_env.service.faults import JobUnknown
from orchard_env.service.jobs import outcome_of, overhead
from orchard_env.service.noting import note
from orchard_env.service.seams import Scope, Work
from orchard_env.service.turns import held_briefly
from orchard_env.service.v2.base import EncodingQuery, ExecPath, Routes, SandboxId, Wait
from orchard_env.service.v2.exec_command import begin, new_exec_id
from orchard_env.service.v2.refusals import REFUSALS
from orchard_env.service.v2.route import JsonRoute
from orchard_env.service.v2.views import exec_view
from orchard_env.types.v2_exec import ExecList, ExecRequest, ExecView, SignalRequest, SignalView

_POLL_S = 30.0
WithOutput = Annotated[bool, Query(description="Tell what it said, too, when it has ended.")]


class ExecRoutes(Routes):
    """`/v2/sandboxes/{sandbox_id}/exec` and `/execs`."""

    def router(self) -> APIRouter:
        """The routes."""
        router = APIRouter(route_class=JsonRoute, tags=["commands"])
        shared: dict[str, Any] = {"responses": REFUSALS, "response_model": ExecView}
        execs = "/sandboxes/{sandbox_id}/execs"
        one = execs + "/{exec_id}"
        add = router.add_api_route
        add("/sandboxes/{sandbox_id}/exec", self.exec, methods=["POST"], **shared)
        add(execs, self.start, methods=["POST"], status_code=201, **shared)
        add(execs, self.list, methods=["GET"], response_model=ExecList, responses=REFUSALS)
        add(one, self.get, methods=["GET"], **shared)
        add(f"{one}/signal", self.signal, methods=["POST"], response_model=SignalView, responses=REFUSALS)
        return router

    async def exec(
        self, request: Request, sandbox_id: SandboxId, wanted: ExecRequest, wait: Wait = 300.0
    ) -> ExecView:
        """Run a command and tell how it ended and what it said. It says `running` when the wait is over
        first; the command goes on, and GET /execs/{exec_id} waits again."""
        entry = await self._entry(request, Scope.USE)
        until = time.monotonic() + self._bounded(wait)
        told = await self._begun(request, entry, wanted, until)
        return exec_view(entry.id, told, encoding=wanted.encoding)

    async def start(self, request: Request, sandbox_id: SandboxId, wanted: ExecRequest) -> ExecView:
        """Start a command, or attach to it, and return at once."""
        entry = await self._entry(request, Scope.USE)
        told = await self._begun(request, entry, wanted, 0.0)
        return exec_view(entry.id, told, encoding=wanted.encoding, output=False)

    async def _begun(self, request: Request, entry: Entry, wanted: ExecRequest, until: float) -> RunTold:
        exec_id, began = wanted.id or new_exec_id(), time.monotonic()
        note(self._services, request, "exec", entry.id, command=as_text(wanted))
        turn = self._services.admission.enter(self._caller(request, Scope.USE), Work.EXEC)
        async with held_briefly(turn), entry.lent() as client:
            with agent_words():
                told = await begin(client, wanted, exec_id=exec_id, wait_s=_next_wait(until))
                told = await settled(client, told, until)
        if told.result is not None:
            over = overhead(told, time.monotonic() - began)
            self._services.meters.executed(
                entry.tenant,
                outcome_of(told.result),
                told.result.duration_s,
                over,
                run=f"{entry.id}.{told.id}",
            )
        return told

    async def list(self, request: Request, sandbox_id: SandboxId) -> ExecList:
        """Every command of the sandbox that is known, whoever started it, without outputs."""
        entry = await self._entry(request, Scope.READ)
        async with entry.lent() as client:
            runs = await client.runs()
        return ExecList(execs=tuple(exec_view(entry.id, run, encoding="utf-8", output=False) for run in runs))

    async def get(
        self,
        request: Request,
        sandbox_id: SandboxId,
        exec_id: ExecPath,
        wait: Wait = 0.0,
        output: WithOutput = True,
        encoding: EncodingQuery = "utf-8",
    ) -> ExecView:
        """How a command stands; with `wait`, when it has ended, or the wait is over."""
        entry = await self._entry(request, Scope.READ)
        until = time.monotonic() + self._bounded(wait)
        async with known_exec(entry, exec_id) as client:
            told = await settled(client, await client.run_status(exec_id, _next_wait(until)), until)
        return exec_view(entry.id, told, encoding=encoding, output=output)

    async def signal(
        self, request: Request, sandbox_id: SandboxId, exec_id: ExecPath, wanted: SignalRequest
    ) -> SignalView:
        """Send a signal. One that is queued is dropped by it."""
        entry = await self._entry(request, Scope.USE)
        async with known_exec(entry, exec_id) as client:
            said = await client.link.ask(
                "POST", f"/v1/exec/{exec_id}/signal", {"signal": wanted.signal, "to": wanted.to}
            )
        with understood():
            return SignalView(delivered=said["delivered"] is True)


def as_text(wanted: ExecRequest) -> str:
    """The command as one line, for the audit log."""
    return wanted.command if isinstance(wanted.command, str) else " ".join(wanted.command)


def _next_wait(until: float) -> float:
    return max(0.0, min(_POLL_S, until - time.monotonic()))


async def settled(client: AgentClient, told: RunTold, until: float) -> RunTold:
    """How it stands when it has ended, or the time is up."""
    while told.open and (wait_s := _next_wait(until)) > 0:
        told = await client.run_status(told.id, wait_s)
    return told


@asynccontextmanager
async def known_exec(entry: Entry, exec_id: str) -> AsyncIterator[AgentClient]:
    """The agent's client for one command of it. Raises JobUnknown when there is none of that id."""
    try:
        async with entry.lent() as client:
            with agent_words():
                yield client
    except ExecError as error:
        if type(error) is not ExecError:
            raise
        raise JobUnknown(
            f"sandbox {entry.id} has no command {exec_id[:128]!r}",
            hint="ids are forgotten 15 minutes after the end, or when 256 others have ended since",
        ) from error
