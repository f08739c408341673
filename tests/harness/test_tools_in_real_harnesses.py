"""One task that brings tools, under harnesses that other people wrote: the same calls, the same record."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from orchard_core import (
    ConfigError,
    Gateway,
    Outcome,
    PluginError,
    Rollout,
    StopReason,
    Task,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    UpstreamRequest,
    load_harness,
    load_provider,
    run_rollout,
)
from orchard_core.rollout.parts import RolloutParts
from orchard_core.testing import FakeModel, FakeReply, FakeTaskSet, FakeTool

TASK = Task(id="shop", taskset="tests", instruction="Find the price and report it.", agent_timeout_s=240)
SHELL = "/tmp/orchard/orchard-tool"
SCRIPT: Sequence[tuple[str, Mapping[str, JsonValue]]] = (
    ("price", {"item": "an apple's"}),
    ("price", {"item": "pear"}),
    ("report", {"cents": 42}),
    ("price", {"item": "too late"}),
)
HARNESSES = {
    "react": "{}",
    "miniswe": "bash",
    "openhands": "{}",
    "cli:claude": "mcp__orchard__{}",
    "cli:codex": "mcp__orchard__{}",
    "cli:kimi": "mcp__orchard__{}",
    "cli:opencode": "orchard_{}",
    "cli:pi": "bash",
    "zeroclaw": "orchard__{}",
}
"""What the model behind each calls: a tool of the task by this name, or the shell."""

STANDIN = Path(__file__).parents[2] / "plugins/harness_zeroclaw/tests/standin/zeroclaw"
OPTIONS = {"zeroclaw": {"binary": shutil.which("zeroclaw") or STANDIN}}
"""Where ZeroClaw itself is not on PATH, its stand-in plays."""


def scripted(called: str) -> FakeModel:
    """A model that plays the script, by how many results it has seen; side calls, such as for a title, are
    offered no such tool and get a few words."""
    names = {called.format(name) for name, _ in SCRIPT}

    def reply(request: UpstreamRequest) -> FakeReply:
        body: Mapping[str, Any] = json.loads(request.body)
        offered = {tool.get("function", tool).get("name") for tool in body.get("tools") or ()}
        if not names & offered:
            return FakeReply(text="A title")
        seen = sum(message["role"] == "tool" for message in body["messages"])
        name, args = SCRIPT[min(seen, len(SCRIPT) - 1)]
        if called == "bash":
            return FakeReply.call("bash", command=shlex.join([SHELL, name, json.dumps(args)]))
        call = ToolCall(id=f"call_{seen}", name=called.format(name), arguments=json.dumps(args))
        return FakeReply(calls=(call,))

    return FakeModel(otherwise=reply)


def shop(calls: list[tuple[str, Mapping[str, JsonValue]]]) -> Sequence[Tool]:
    def price(args: Mapping[str, JsonValue]) -> ToolResult:
        calls.append(("price", args))
        if args["item"] == "pear":
            return ToolResult.text("no pears today", is_error=True)
        return ToolResult.text(f"{args['item']} costs 42 cents")

    def report(args: Mapping[str, JsonValue]) -> ToolResult:
        calls.append(("report", args))
        return ToolResult(content=(Text(text="thank you"),), ends=True, answer=str(args["cents"]))

    item: Mapping[str, JsonValue] = {"type": "object", "properties": {"item": {"type": "string"}}}
    cents: Mapping[str, JsonValue] = {"type": "object", "properties": {"cents": {"type": "integer"}}}
    return [FakeTool("price", price, parameters=item), FakeTool("report", report, parameters=cents)]


async def play(name: str, calls: list[tuple[str, Mapping[str, JsonValue]]]) -> Rollout:
    provider = load_provider("local")
    try:
        async with Gateway() as gateway:
            parts = RolloutParts(
                taskset=FakeTaskSet([TASK], tools=shop(calls)),
                harness=load_harness(name, **OPTIONS.get(name, {})),
                model=scripted(HARNESSES[name]),
                provider=provider,
                gateway=gateway,
            )
            return await run_rollout(TASK, parts)
    except (ConfigError, PluginError) as error:
        pytest.skip(f"{name} is not to be had here: {error}")
    finally:
        await provider.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", HARNESSES)
async def test_the_tasks_tools_reach_it_and_end_its_run(name: str) -> None:
    calls: list[tuple[str, Mapping[str, JsonValue]]] = []
    rollout = await play(name, calls)
    assert calls == list(SCRIPT[:3]), "each call once, and none after the end"
    assert (rollout.outcome, rollout.error) == (Outcome.COMPLETED, None)
    assert rollout.result is not None
    assert (rollout.result.stop, rollout.result.answer) == (StopReason.SUBMITTED, "42")
    messages = rollout.trajectory.messages
    heard = "\n".join(message.raw for message in messages.values() if message.role == "tool")
    assert "no pears today" in heard
    last = [json.loads(messages[key].raw) for key in rollout.trajectory.last_observations]
    assert {"role": "tool", "name": "report", "content": "thank you"} in last
