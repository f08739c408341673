"""What tools and commands gave after the last model call is part of the last turn."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace

from orchard_core import (
    HarnessCapabilities,
    HarnessResult,
    Image,
    Limits,
    ModelEndpoint,
    Sandbox,
    StopReason,
    Task,
    Text,
    Tool,
    ToolResult,
    ToolUse,
)
from orchard_core.cli.reading import render
from orchard_core.gateway.conversation import content_hash
from orchard_core.gateway.turns import turns
from orchard_core.rollout.observing import RESULT_LIMIT, RESULTS
from orchard_core.rollout.parts import RolloutParts
from orchard_core.testing import FakeTaskSet, FakeTool
from orchard_core.types.model import Message
from orchard_core.types.trajectory import Trajectory

from .attempts import run, run_body
from .harnesses import answer


def contents(messages: Sequence[Message]) -> list[str]:
    return [json.loads(message.raw)["content"] for message in messages]


def last(trajectory: Trajectory) -> list[str]:
    return contents(turns(trajectory)[-1].observations)


async def test_commands_after_the_last_call_are_its_observations_and_are_shown(parts: RolloutParts) -> None:
    async def body(task: Task, sandbox: Sandbox, model: ModelEndpoint) -> None:
        await answer(model)
        await sandbox.exec("echo tests pass")
        await sandbox.exec("echo oh no >&2; exit 3")

    rollout = await run_body(parts, body)
    assert last(rollout.trajectory) == ["tests pass\n", "oh no\n\n[exit code 3]"]
    text = render(rollout, full=True).plain
    assert "tests pass" in text
    assert "[exit code 3]" in text


async def test_what_a_later_request_could_carry_is_not_kept_twice(parts: RolloutParts) -> None:
    async def body(task: Task, sandbox: Sandbox, model: ModelEndpoint) -> None:
        await sandbox.exec("echo before")
        await answer(model)
        await sandbox.exec("echo between")
        await answer(model)
        await sandbox.exec("echo after")

    rollout = await run_body(parts, body)
    assert last(rollout.trajectory) == ["after\n"]


async def test_a_rollout_that_ends_with_an_answer_has_no_last_observations(parts: RolloutParts) -> None:
    rollout = await run(parts)
    assert rollout.trajectory.last_observations == ()


async def test_the_command_that_a_whole_harness_runs_in_is_no_observation(parts: RolloutParts) -> None:
    async def body(task: Task, sandbox: Sandbox, model: ModelEndpoint) -> None:
        program = asyncio.create_task(sandbox.exec("while [ ! -e ready ]; do sleep 0.05; done; echo log"))
        await asyncio.sleep(0.1)
        await answer(model)
        await sandbox.write(f"{task.workdir}/ready", b"")
        await program

    rollout = await run_body(parts, body)
    assert rollout.trajectory.last_observations == ()


class Using:
    """Honours `Harness`: one model call, then one call of each tool."""

    name = "using"
    version = "1"
    capabilities = HarnessCapabilities(tools=ToolUse.NATIVE)

    async def run(
        self, task: Task, sandbox: Sandbox, model: ModelEndpoint, tools: Sequence[Tool], limits: Limits
    ) -> HarnessResult:
        await answer(model)
        for tool in tools:
            await tool.call({})
        return HarnessResult(stop=StopReason.SUBMITTED, turns=1)


async def test_results_of_the_tasks_tools_are_kept_as_ascii_by_content_hash(parts: RolloutParts) -> None:
    def look(_: object) -> ToolResult:
        return ToolResult(content=(Text(text="grün"), Image(data=b"1234")))

    tasks = FakeTaskSet(list(parts.taskset.tasks()), tools=[FakeTool(act=look)])
    trajectory = (await run(replace(parts, taskset=tasks, harness=Using()))).trajectory
    [key] = trajectory.last_observations
    message = trajectory.messages[key]
    assert message.raw.isascii()
    assert content_hash(message.raw) == key
    assert last(trajectory) == ["grün\n[image/png, 4 bytes]"]


async def test_long_and_many_results_are_bounded(parts: RolloutParts) -> None:
    async def body(task: Task, sandbox: Sandbox, model: ModelEndpoint) -> None:
        await answer(model)
        for number in range(RESULTS + 3):
            await sandbox.exec(f"echo {number}")
        await sandbox.exec("echo first; yes | head -c 100000; echo last")

    kept = last((await run_body(parts, body)).trajectory)
    assert len(kept) == RESULTS
    assert kept[0] == "4\n"
    assert len(kept[-1]) < RESULT_LIMIT + 100
    assert kept[-1].startswith("first\n")
    assert kept[-1].endswith("last\n")
