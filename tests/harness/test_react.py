"""react behind the real gateway: what is recorded is what was said, and limits end a run by their names."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

import pytest

from orchard_core import (
    HarnessResult,
    Limits,
    ModelError,
    ModelRejected,
    SandboxSpec,
    SessionContext,
    StopReason,
    Task,
    Tool,
    Trajectory,
    load_harness,
)
from orchard_core.gateway.samples import build_samples
from orchard_core.gateway.scripted import Reply, ReplyCall, ScriptedModel
from orchard_core.gateway.server import Gateway
from orchard_core.gateway.turns import turns
from orchard_core.testing import FakeModel, FakeProvider, FakeReply, FakeSandbox

pytest.importorskip("orchard_harness_react")
TASK = Task(id="t", taskset="tests", instruction="Do it.")


def bash(command: str, text: str = "") -> Reply:
    """An answer that runs one command."""
    return Reply(text=text, calls=(ReplyCall(name="bash", arguments={"command": command}),))


SUBMIT = Reply(calls=(ReplyCall(name="submit", arguments={}),))


@dataclass(frozen=True, kw_only=True)
class Ran:
    """A finished run."""

    result: HarnessResult
    """What the harness said."""
    trajectory: Trajectory
    """What the gateway recorded."""


@pytest.fixture
async def sandbox() -> AsyncIterator[FakeSandbox]:
    """A sandbox without isolation."""
    provider = FakeProvider()
    yield await provider.create(SandboxSpec())
    await provider.close()


async def run(
    sandbox: FakeSandbox,
    model: ScriptedModel | FakeModel,
    *,
    limits: Limits = Limits(),  # noqa: B008 - frozen
    tools: Sequence[Tool] = (),
    **options: object,
) -> Ran:
    """The harness against a session of a real gateway."""
    async with Gateway() as gateway:
        session = await gateway.open_session(model, SessionContext(rollout="r", task=TASK), limits=limits)
        harness = load_harness("react", **options)
        result = await harness.run(TASK, sandbox, session.endpoint, tools, limits)
        return Ran(result=result, trajectory=await session.close())


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("protocol", ["native", "text"])
async def test_every_call_continues_the_one_before_and_echoes_it_unchanged(
    sandbox: FakeSandbox, stream: bool, protocol: str
) -> None:
    steps = [bash(f"echo {n}", text="Thinking, é.") for n in range(4)]
    if protocol == "text":
        steps = [Reply(text=f"Now:\n```bash\necho {n}\n```", reasoning="hm") for n in range(4)]
    ending = Reply(text='<tool_call>{"name": "submit"}</tool_call>') if protocol == "text" else SUBMIT
    ran = await run(sandbox, ScriptedModel([*steps, ending]), stream=stream, protocol=protocol)
    assert ran.result.stop is StopReason.SUBMITTED
    told = turns(ran.trajectory)
    assert [turn.follows for turn in told] == [None, 0, 1, 2, 3]
    assert [call.streamed for call in ran.trajectory.calls] == [stream] * 5
    sent = {message.raw for message in ran.trajectory.messages.values()}
    assert len([raw for raw in sent if json.loads(raw)["role"] == "assistant"]) == 5, sent
    assert "1\\n[exit code 0]" in told[1].observations[0].raw


async def test_all_that_was_sampled_joins_to_one_training_sample(sandbox: FakeSandbox) -> None:
    replies = [FakeReply.call("bash", command=f"echo {n}", text="So.") for n in range(4)]
    ran = await run(sandbox, FakeModel([*replies, FakeReply.call("submit")]))
    found = build_samples(ran.trajectory)
    sampled = sum(len(call.completion_tokens or ()) for call in ran.trajectory.calls)
    assert len(found.samples) == 1
    assert sum(found.samples[0].mask) == sampled > 0
    assert not found.untrained


async def test_half_of_a_surrogate_pair_is_recorded_and_goes_back(sandbox: FakeSandbox) -> None:
    ran = await run(sandbox, ScriptedModel([bash("true", text="odd \ud83d end"), SUBMIT]))
    assert ran.result.stop is StopReason.SUBMITTED
    assert any("\\ud83d end" in message.raw for message in ran.trajectory.messages.values())
    assert turns(ran.trajectory)[1].follows == 0


@pytest.mark.parametrize(
    ("limits", "reason", "calls"),
    [
        (Limits(tokens=10), StopReason.BUDGET, 1),
        (Limits(calls=3), StopReason.BUDGET, 3),
        (Limits(turns=2), StopReason.TURN_LIMIT, 2),
        (Limits(wall_clock_s=0.5), StopReason.BUDGET, None),
    ],
)
async def test_a_limit_ends_the_run_by_its_name(
    sandbox: FakeSandbox, limits: Limits, reason: StopReason, calls: int | None
) -> None:
    ran = await run(sandbox, ScriptedModel(lambda _: bash("sleep 0.1")), limits=limits)
    answered = [call for call in ran.trajectory.calls if call.response is not None]
    assert ran.result.stop is reason
    assert calls is None or len(answered) == calls == ran.result.turns


async def test_a_conversation_that_outgrows_the_model_ends_as_such(sandbox: FakeSandbox) -> None:
    body = json.dumps({"error": {"message": "too long", "code": "context_length_exceeded"}})
    model = ScriptedModel([bash("true"), ModelRejected("too long", status=400, body=body)])
    assert (await run(sandbox, model)).result.stop is StopReason.CONTEXT_LIMIT


async def test_a_refusal_of_the_model_passes_through(sandbox: FakeSandbox) -> None:
    with pytest.raises(ModelRejected, match="no such thing"):
        await run(sandbox, ScriptedModel([ModelRejected("no such thing", status=400)]))


async def test_a_revoked_key_ends_the_run_at_once(sandbox: FakeSandbox) -> None:
    async with Gateway() as gateway:
        model = ScriptedModel(lambda _: bash("sleep 0.05"))
        session = await gateway.open_session(model, SessionContext(rollout="r", task=TASK))
        work = asyncio.create_task(load_harness("react").run(TASK, sandbox, session.endpoint, [], Limits()))
        while len(session.trajectory().calls) < 3:
            await asyncio.sleep(0.01)
        await session.close()
        with pytest.raises(ModelError):
            await work
