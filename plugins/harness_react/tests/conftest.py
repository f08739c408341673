"""A sandbox, and a run of the harness in it against a model that says what it is told."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from orchard_harness_react.config import ReactConfig
from orchard_harness_react.harness import React

from orchard_core import (
    HarnessResult,
    Limits,
    Sandbox,
    SandboxSpec,
    SandboxUnavailable,
    Task,
    Tool,
    open_sandbox,
)
from orchard_core.testing import FakeProvider, skip_without_isolation

from .model_server import ModelServer, Said, model_server


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What came of a run."""

    result: HarnessResult
    """What the harness reported."""
    server: ModelServer
    """What the model was asked."""

    def observation(self, place: int = 0) -> str:
        """The text of the tool result at this place of the last request."""
        results = [message for message in self.server.messages if message["role"] == "tool"]
        text = results[place]["content"]
        assert isinstance(text, str)
        return text


Play = Callable[..., Awaitable[Ran]]
REAL = pytest.mark.parametrize("sandbox", ["fake", "local"], indirect=True)
"""For tests that are to hold in a real sandbox as well."""


@pytest.fixture
async def sandbox(request: pytest.FixtureRequest) -> AsyncIterator[Sandbox]:
    """A sandbox whose workdir is /workspace: a fake one, or, with REAL, a real one where there can be one."""
    if getattr(request, "param", "fake") == "fake":
        provider = FakeProvider(output_limit=1 << 20)
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
    """`await play(answer, answer, ..., brings=, limits=, **options)` runs the harness to its end; the task
    brings tools."""

    async def run(
        *answers: Said,
        brings: Sequence[Tool] = (),
        limits: Limits = Limits(),  # noqa: B008 - frozen
        instruction: str = "Do it.",
        **options: Any,
    ) -> Ran:
        task = Task(id="t", taskset="tests", instruction=instruction)
        async with model_server(*answers) as server:
            harness = React(ReactConfig(**options))
            result = await harness.run(task, sandbox, server.endpoint, brings, limits)
        return Ran(result=result, server=server)

    return run
