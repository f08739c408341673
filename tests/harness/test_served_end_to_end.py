"""One task that brings tools, in real sandboxes without network, under harnesses that call tools natively, by
MCP from the host, by MCP from inside, and by command line: one story in every record."""

from __future__ import annotations

import json
import shlex
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass

import pytest
from pydantic import JsonValue

from orchard_core import (
    Harness,
    Outcome,
    Rollout,
    SandboxProvider,
    StopReason,
    Task,
    ToolCall,
    ToolUse,
    load_provider,
)
from orchard_core.gateway.server import Gateway
from orchard_core.harness.tool_client import COMMAND
from orchard_core.rollout.attempt import run_rollout
from orchard_core.rollout.parts import RolloutParts
from orchard_core.testing import FakeHarness, FakeModel, FakeReply, FakeTaskSet

from .inside_mcp import InsideMcpHarness
from .served import CliHarness, McpHarness
from .shop import SCRIPT, Called, shop

TASK = Task(id="shop", taskset="tests", instruction="Find the price and report it.", agent_timeout_s=60)
SHELL = f"/tmp/orchard/{COMMAND}"


@dataclass(frozen=True, kw_only=True)
class Told:
    """A rollout's story."""

    called: Sequence[Called]
    """The tools' calls, in order."""
    rollout: Rollout
    """The record."""


@pytest.fixture
async def provider() -> AsyncIterator[SandboxProvider]:
    made = load_provider("local")
    yield made
    await made.close()


def script(harness: Harness) -> list[FakeReply]:
    """The same calls, as a model behind this harness makes them."""
    return [_reply(harness.capabilities.tools, name, args) for name, args in SCRIPT]


def _reply(use: ToolUse, name: str, args: Mapping[str, JsonValue]) -> FakeReply:
    text = json.dumps(args)
    if use is ToolUse.CLI:
        return FakeReply.call("bash", command=shlex.join([SHELL, name, text]))
    called = f"mcp__orchard__{name}" if use is ToolUse.MCP else name
    return FakeReply(calls=(ToolCall(id=f"call-{name}", name=called, arguments=text),))


async def play(harness: Harness, provider: SandboxProvider) -> Told:
    called: list[Called] = []
    async with Gateway() as gateway:
        parts = RolloutParts(
            taskset=FakeTaskSet([TASK], tools=shop(called)),
            harness=harness,
            model=FakeModel(script(harness)),
            provider=provider,
            gateway=gateway,
        )
        return Told(called=called, rollout=await run_rollout(TASK, parts))


@pytest.mark.parametrize(
    "harness", [FakeHarness(), McpHarness(), InsideMcpHarness(), CliHarness()], ids=lambda made: made.name
)
async def test_the_record_tells_the_same_story(harness: Harness, provider: SandboxProvider) -> None:
    told = await play(harness, provider)
    rollout = told.rollout
    assert told.called == list(SCRIPT[:3]), "each call once, and none after the end"
    assert (rollout.outcome, rollout.error) == (Outcome.COMPLETED, None)
    assert rollout.result is not None
    assert (rollout.result.stop, rollout.result.answer) == (StopReason.SUBMITTED, "42")
    assert rollout.result.turns == 3
    assert rollout.score == 1.0
    assert len(rollout.trajectory.calls) == 3, "the model answers no more after the end"
    messages = rollout.trajectory.messages
    heard = "\n".join(message.raw for message in messages.values() if message.role == "tool")
    assert "an apple's costs 42 cents" in heard
    assert "no pears today" in heard
    last = [json.loads(messages[key].raw) for key in rollout.trajectory.last_observations]
    assert {"role": "tool", "name": "report", "content": "thank you"} in last
    assert all("thank you" in seen["content"] for seen in last), "a program's output tells the same again"
