"""Tools that the core serves: whatever a harness makes of their end or their failure, the record is right."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import aiohttp
import pytest
from pydantic import JsonValue

from orchard_core import (
    Attribution,
    ConfigError,
    FileMissing,
    HarnessCapabilities,
    HarnessResult,
    Limits,
    ModelEndpoint,
    Outcome,
    Sandbox,
    SandboxConnectionLost,
    StopReason,
    Task,
    Text,
    Tool,
    ToolResult,
    ToolUse,
)
from orchard_core.rollout.opening import check_images
from orchard_core.rollout.parts import RolloutParts
from orchard_core.testing import FakeProvider, FakeTaskSet, FakeTool

from .attempts import QUICK, run, summary
from .harnesses import answer

FINAL = ToolResult(content=(Text(text="bye"),), ends=True, answer="42")
Body = Callable[[ModelEndpoint, Sequence[Tool]], Awaitable[HarnessResult | None]]


class Using:
    """Honours `Harness`: does what its function says."""

    name, version = "using", "1"

    def __init__(self, body: Body, use: ToolUse, *, turn_limit: bool = True) -> None:
        self._body = body
        self.capabilities = HarnessCapabilities(tools=use, turn_limit=turn_limit)

    async def run(
        self, task: Task, sandbox: Sandbox, model: ModelEndpoint, tools: Sequence[Tool], limits: Limits
    ) -> HarnessResult:
        result = await self._body(model, tools)
        return result or HarnessResult(stop=StopReason.ANSWERED, answer="my last words")


async def post(model: ModelEndpoint, name: str, **arguments: JsonValue) -> Mapping[str, Any]:
    """A call by the REST pair."""
    headers = {"Authorization": f"Bearer {model.api_key}"}
    url = f"{model.root_url}/tools/call/{name}"
    async with aiohttp.ClientSession() as http, http.post(url, json=arguments, headers=headers) as response:
        said: Mapping[str, Any] = await response.json()
        return said


def with_tool(
    parts: RolloutParts, act: Callable[[object], ToolResult], body: Body, use: ToolUse
) -> RolloutParts:
    taskset = FakeTaskSet(list(parts.taskset.tasks()), tools=[FakeTool("act", act)])
    return replace(parts, taskset=taskset, harness=Using(body, use))


def failing(error: BaseException) -> Callable[[object], ToolResult]:
    def act(_: object) -> ToolResult:
        raise error

    return act


async def call_it(model: ModelEndpoint, tools: Sequence[Tool]) -> None:
    await answer(model)
    await post(model, "act")


@pytest.mark.parametrize("use", [ToolUse.MCP, ToolUse.CLI])
async def test_a_tool_that_ends_the_run_is_its_submission(parts: RolloutParts, use: ToolUse) -> None:
    rollout = await run(with_tool(parts, lambda _: FINAL, call_it, use))
    assert rollout.result is not None
    assert (rollout.result.stop, rollout.result.answer) == (StopReason.SUBMITTED, "42")
    assert rollout.result.turns == 1
    assert rollout.outcome is Outcome.COMPLETED
    (seen,) = rollout.trajectory.last_observations
    assert '"name":"act"' in rollout.trajectory.messages[seen].raw


async def test_a_harness_that_goes_on_after_the_end_is_ended(parts: RolloutParts) -> None:
    gone = asyncio.Event()

    async def go_on(model: ModelEndpoint, tools: Sequence[Tool]) -> None:
        await answer(model)
        await answer(model)
        await post(model, "act")
        try:
            await asyncio.Event().wait()
        finally:
            gone.set()

    quick = QUICK.model_copy(update={"phases": QUICK.phases.model_copy(update={"ending_s": 0.05})})
    parts = replace(with_tool(parts, lambda _: FINAL, go_on, ToolUse.MCP), settings=quick)
    rollout = await run(parts)
    assert rollout.result is not None
    assert (rollout.result.stop, rollout.result.answer) == (StopReason.SUBMITTED, "42")
    assert rollout.result.turns == 2
    assert gone.is_set()


async def test_a_harness_that_breaks_over_the_end_has_submitted(parts: RolloutParts) -> None:
    async def insist(model: ModelEndpoint, tools: Sequence[Tool]) -> None:
        await call_it(model, tools)
        assert (await post(model, "act"))["is_error"] is True
        await answer(model)  # the model answers no more

    rollout = await run(with_tool(parts, lambda _: FINAL, insist, ToolUse.MCP))
    assert rollout.outcome is Outcome.COMPLETED
    assert len(rollout.trajectory.calls) == 1


@pytest.mark.parametrize(
    ("error", "expected", "kind"),
    [
        (ZeroDivisionError("bug"), (Outcome.TASK_INVALID, Attribution.TASK), "TaskInvalid"),
        (SystemExit(3), (Outcome.TASK_INVALID, Attribution.TASK), "TaskInvalid"),
        (FileMissing("no data.json"), (Outcome.TASK_INVALID, Attribution.TASK), "TaskInvalid"),
        (
            SandboxConnectionLost("the agent is away"),
            (Outcome.SANDBOX_FAILED, Attribution.INFRASTRUCTURE),
            "SandboxConnectionLost",
        ),
    ],
)
async def test_what_a_tool_raises_is_named_by_itself_not_by_the_harness(
    parts: RolloutParts, error: BaseException, expected: tuple[Outcome, Attribution], kind: str
) -> None:
    async def swallow(model: ModelEndpoint, tools: Sequence[Tool]) -> None:
        await answer(model)
        with pytest.raises(Exception, match=r"raised|away"):
            await tools[0].call({})

    for body, use in ((call_it, ToolUse.MCP), (swallow, ToolUse.NATIVE)):
        rollout = await run(with_tool(parts, failing(error), body, use))
        assert summary(rollout) == expected
        assert rollout.error is not None
        assert rollout.error.kind == kind


async def test_a_limit_of_turns_that_nobody_holds_is_refused_before_anything_starts(
    parts: RolloutParts, provider: FakeProvider
) -> None:
    limited = replace(parts, harness=Using(call_it, ToolUse.NONE, turn_limit=False), limits=Limits(turns=7))
    for refused in (run(limited), check_images(limited.taskset.tasks(), limited)):
        with pytest.raises(ConfigError, match=r"number of turns") as caught:
            await refused
        assert "--max-calls 7" in caught.value.hint
    assert provider.created == []


async def test_a_limit_of_calls_holds_such_a_harness(parts: RolloutParts) -> None:
    async def for_ever(model: ModelEndpoint, tools: Sequence[Tool]) -> None:
        while True:
            await answer(model)

    harness = Using(for_ever, ToolUse.NONE, turn_limit=False)
    rollout = await run(replace(parts, harness=harness, limits=Limits(calls=3)))
    assert summary(rollout) == (Outcome.TRUNCATED, Attribution.AGENT)
    assert len(rollout.trajectory.calls) == 3
