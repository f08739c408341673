"""The real OpenHands, in a real sandbox, before a model that says what it is told."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest
from orchard_harness_openhands.config import OpenHandsConfig
from orchard_harness_openhands.harness import OpenHands

from orchard_core import ConfigError, Sandbox, SandboxUnavailable, Task, ToolCall, open_sandbox
from orchard_core.testing import FakeModel, FakeReply, skip_without_isolation
from orchard_core.testing.suites.harness.stage import Played, stage

Play = Callable[..., Coroutine[Any, Any, Played]]


@pytest.fixture
async def openhands() -> OpenHands:
    """The harness, its interpreter made; a machine that cannot make it skips, and says how to get it."""
    harness = OpenHands(OpenHandsConfig(llm={"temperature": 0.5}))
    try:
        await harness.program()
    except ConfigError as error:
        pytest.skip(str(error))
    return harness


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    """A local one."""
    try:
        async with open_sandbox("local") as made:
            yield made
    except SandboxUnavailable as error:
        skip_without_isolation(error)


@pytest.fixture
def play(openhands: OpenHands, sandbox: Sandbox) -> Play:
    """`await play((tool, arguments), ...)`: the model makes these calls one a turn, then calls finish."""

    async def run(*calls: tuple[str, dict[str, object]]) -> Played:
        return await play_in(openhands, sandbox, *calls)

    return run


async def play_in(openhands: OpenHands, sandbox: Sandbox, *calls: tuple[str, dict[str, object]]) -> Played:
    """The same, in a sandbox of one's own."""
    end: tuple[str, dict[str, object]] = ("finish", {"message": "all done"})
    made = [*calls, end]
    model = FakeModel([_call(place, name, arguments) for place, (name, arguments) in enumerate(made)])
    task = Task(id="one", taskset="tests", instruction="Do as you like.")
    async with stage(openhands) as before:
        return await before.play(task, sandbox, model)


def heard(played: Played) -> list[str]:
    """What the model was told of each call, in order."""
    messages = [json.loads(message.raw) for message in played.trajectory.messages.values()]
    told = {
        message["tool_call_id"]: _text(message["content"])
        for message in messages
        if message["role"] == "tool"
    }
    return [told[name] for name in sorted(told)]


def _call(place: int, name: str, arguments: dict[str, object]) -> FakeReply:
    call = ToolCall(id=f"call_{place:03}", name=name, arguments=json.dumps(arguments))
    return FakeReply(calls=(call,))


def _text(content: object) -> str:
    if isinstance(content, list):
        return "\n".join(part.get("text", "") for part in content)
    return str(content)
