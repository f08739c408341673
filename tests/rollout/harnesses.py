"""Harnesses that misbehave in one way each."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from orchard_core import (
    HarnessCapabilities,
    HarnessResult,
    Limits,
    ModelEndpoint,
    Sandbox,
    StopReason,
    Task,
    Tool,
    ToolUse,
)
from orchard_core.testing import chat

Body = Callable[[Task, Sandbox, ModelEndpoint], Awaitable[HarnessResult | None]]


class Acting:
    """Honours `Harness`: does what its function says."""

    name = "acting"
    version = "1"

    def __init__(self, body: Body, *, tools: ToolUse = ToolUse.NATIVE) -> None:
        self._body = body
        self.capabilities = HarnessCapabilities(tools=tools)

    async def run(
        self, task: Task, sandbox: Sandbox, model: ModelEndpoint, tools: Sequence[Tool], limits: Limits
    ) -> HarnessResult:
        result = await self._body(task, sandbox, model)
        return result or HarnessResult(stop=StopReason.SUBMITTED, turns=1)


async def answer(model: ModelEndpoint) -> None:
    """One model call."""
    await chat(model, [{"role": "user", "content": "go"}])


async def write_then_sleep(task: Task, sandbox: Sandbox, model: ModelEndpoint) -> None:
    await answer(model)
    await sandbox.write("/workspace/answer.txt", b"0")
    await asyncio.sleep(3600)


async def solve(task: Task, sandbox: Sandbox, model: ModelEndpoint) -> None:
    await answer(model)
    await sandbox.write("/workspace/answer.txt", task.id.removeprefix("write-").encode())
