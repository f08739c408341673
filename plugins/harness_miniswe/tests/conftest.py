"""A sandbox, and runs of the harness in it against a model that says what it is told."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest
from orchard_harness_miniswe.harness import TRAJECTORY, Miniswe
from orchard_harness_miniswe.settings import MinisweConfig
from orchard_harness_miniswe.trajectory import MinisweTrajectory, read_trajectory

from orchard_core import (
    Gateway,
    HarnessResult,
    Limits,
    Sandbox,
    SandboxSpec,
    SandboxUnavailable,
    SessionContext,
    Task,
    Trajectory,
    open_sandbox,
)
from orchard_core.testing import FakeModel, FakeProvider, FakeReply, skip_without_isolation


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What came of a run."""

    result: HarnessResult
    """What the harness reported."""
    recorded: Trajectory
    """What the gateway recorded."""

    @property
    def written(self) -> MinisweTrajectory:
        """The agent's own record."""
        return read_trajectory(self.result.artifacts[TRAJECTORY])

    @property
    def observations(self) -> list[Any]:
        """What the agent told the model of its commands."""
        return [said.content for said in self.written.messages[2:] if said.role in ("tool", "user")]


Play = Callable[..., Awaitable[Ran]]
REAL = pytest.mark.parametrize("sandbox", ["fake", "local"], indirect=True)
"""For tests that are to hold in a real sandbox as well."""


def bash(*commands: str) -> FakeReply:
    """An answer that calls for these commands."""
    calls = tuple(FakeReply.call("bash", command=command).calls[0] for command in commands)
    named = tuple(call.model_copy(update={"id": f"c{n}"}) for n, call in enumerate(calls))
    return FakeReply(text="On with it.", calls=named)


def submit(said: str = "") -> FakeReply:
    """An answer that submits."""
    return bash(f"echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; printf '{said}'")


@pytest.fixture
async def sandbox(request: pytest.FixtureRequest) -> AsyncIterator[Sandbox]:
    """A fake sandbox, or, with REAL, a real one where there can be one."""
    if getattr(request, "param", "fake") == "fake":
        provider = FakeProvider()
        yield await provider.create(SandboxSpec())
        await provider.close()
        return
    try:
        async with open_sandbox("local") as real:
            yield real
    except SandboxUnavailable as error:
        skip_without_isolation(error)


@pytest.fixture
def play(sandbox: Sandbox) -> Play:
    """`await play(reply, reply, ..., limits=, session_limits=, **options)` runs the harness to its end."""

    async def run(
        *replies: FakeReply,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        session_limits: Limits = Limits(),  # noqa: B008 - frozen
        instruction: str = "Do it.",
        **options: Any,
    ) -> Ran:
        task = Task(id="t", taskset="tests", instruction=instruction)
        async with Gateway() as gateway:
            session = await gateway.open_session(
                FakeModel(list(replies)), SessionContext(task=task), limits=session_limits
            )
            try:
                harness = Miniswe(MinisweConfig(**options))
                result = await harness.run(task, sandbox, session.endpoint, [], limits)
            finally:
                await session.close()
            return Ran(result=result, recorded=session.trajectory())

    return run
