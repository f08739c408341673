"""One run of a harness against a recorded gateway session."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from orchard_core.gateway.contract import Model, SessionContext
from orchard_core.gateway.retry import RetryPolicy
from orchard_core.gateway.server import Gateway
from orchard_core.gateway.session import Session
from orchard_core.harness.contract import Harness
from orchard_core.rollout.observing import LastResults, observed_tools
from orchard_core.rollout.settings import PhaseLimits
from orchard_core.rollout.tool_ending import ToolEnding
from orchard_core.sandbox.contract import Sandbox
from orchard_core.tasks.contract import Tool
from orchard_core.types.harness import HarnessResult, Limits
from orchard_core.types.model import ModelCall
from orchard_core.types.task import Solution, SolutionStep, Task
from orchard_core.types.trajectory import Trajectory


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What a run gave."""

    result: HarnessResult
    """What the harness reported."""
    trajectory: Trajectory
    """What the gateway recorded."""
    session: Session
    """The session, closed."""

    @property
    def main_calls(self) -> Sequence[ModelCall]:
        """The calls that offer tools: the others are for titles and the like."""
        return main_calls(self.trajectory)

    @property
    def heard(self) -> str:
        """Every recorded message as JSON text, one a line."""
        return "\n".join(message.raw for message in self.trajectory.messages.values())


class Stage:
    """A gateway with one harness before it and any model behind it."""

    def __init__(self, gateway: Gateway, harness: Harness) -> None:
        self._gateway = gateway
        self._harness = harness
        self.last: Session | None = None
        """The session opened last, for runs that raise."""

    async def play(
        self,
        task: Task,
        sandbox: Sandbox,
        model: Model,
        *,
        solution: Solution | None = None,
        tools: Sequence[Tool] = (),
        limits: Limits = Limits(),  # noqa: B008 - frozen
        session_limits: Limits = Limits(),  # noqa: B008 - frozen
    ) -> Played:
        """Run the task in a session of its own, the tools watched as in a rollout. Raises what the harness
        raises, and what a tool raised."""
        ending = ToolEnding()
        noted = observed_tools(tools, LastResults(), ending)
        context = SessionContext(rollout=task.id, task=task, solution=lambda: solution)
        session = await self._gateway.open_session(model, context, limits=session_limits, tools=noted)
        self.last = session
        try:
            run = self._harness.run(task, sandbox, session.endpoint, noted, limits)
            result = await ending.followed(
                run, answers=lambda: len(session.trajectory().calls), limits=PhaseLimits()
            )
        finally:
            await session.close()
        assert isinstance(result, HarnessResult), "a harness gives a HarnessResult"
        return Played(result=result, trajectory=session.trajectory(), session=session)


@asynccontextmanager
async def stage(harness: Harness) -> AsyncIterator[Stage]:
    """A gateway that repeats a failed call at once, and once."""
    async with Gateway(retry=RetryPolicy(attempts=2, base_s=0.01), call_timeout_s=600) as gateway:
        yield Stage(gateway, harness)


def steps(*commands: str, answer: str = "") -> Solution:
    """A solution of these commands, for the oracle to play."""
    return Solution(
        steps=tuple(SolutionStep(command=command, thought="On with it.") for command in commands),
        answer=answer,
    )


def as_json(text: str) -> str:
    """How a text stands inside recorded JSON, the quotes left out."""
    return json.dumps(text)[1:-1]


def main_calls(trajectory: Trajectory) -> Sequence[ModelCall]:
    """The calls that offer tools."""
    return [call for call in trajectory.calls if call.tools is not None]
