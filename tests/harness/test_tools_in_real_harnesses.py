"""One task that brings tools, under harnesses that other people wrote: the same calls, the same record."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

import pytest

from orchard_core import (
    Gateway,
    Outcome,
    Rollout,
    StopReason,
    Task,
    ToolCall,
    UpstreamRequest,
    load_provider,
    run_rollout,
)
from orchard_core.rollout.parts import RolloutParts
from orchard_core.testing import FakeModel, FakeReply, FakeTaskSet

from .real import real_harness
from .shop import SCRIPT, Called, shop

TASK = Task(id="shop", taskset="tests", instruction="Find the price and report it.", agent_timeout_s=240)
SHELL = "/tmp/orchard/orchard-tool"
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


async def play(name: str, calls: list[Called]) -> Rollout:
    harness = await real_harness(name)
    provider = load_provider("local")
    try:
        async with Gateway() as gateway:
            parts = RolloutParts(
                taskset=FakeTaskSet([TASK], tools=shop(calls)),
                harness=harness,
                model=scripted(HARNESSES[name]),
                provider=provider,
                gateway=gateway,
            )
            return await run_rollout(TASK, parts)
    finally:
        await provider.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", HARNESSES)
async def test_the_tasks_tools_reach_it_and_end_its_run(name: str) -> None:
    calls: list[Called] = []
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
