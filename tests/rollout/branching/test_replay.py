"""Recorded calls are recognised by what they ask, whatever the order, and answered as they were."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from orchard_core import (
    Dialect,
    HarnessResult,
    Limits,
    Model,
    ModelEndpoint,
    ModelRejected,
    Rollout,
    Sandbox,
    StopReason,
    Task,
    Tool,
    UpstreamRequest,
    load_harness,
)
from orchard_core.gateway.scripted_tokens import ScriptedTokenModel
from orchard_core.rollout.attempt import run_rollout
from orchard_core.rollout.branching.branch import Branch, BranchMode
from orchard_core.rollout.branching.brancher import Brancher
from orchard_core.rollout.branching.model import ReplayingModel
from orchard_core.rollout.branching.recorded import Recording, asked_by
from orchard_core.rollout.branching.replay import Replay
from orchard_core.rollout.parts import RolloutParts
from orchard_core.testing import FakeHarness, FakeModel, FakeReply, chat

from ..attempts import the_task
from .making import TRAIL, recorded

REPLIES = [FakeReply.call("bash", command=command) for command in TRAIL]


async def rollout_of(parts: RolloutParts) -> Rollout:
    return await run_rollout(the_task(parts), parts)


async def branch_at(turn: int, rollout: Rollout, parts: RolloutParts, model: Model | None = None) -> Branch:
    """One that does everything again, kept whole."""
    stand_in = ReplayingModel(model or parts.model)
    return await Brancher(rollout, parts, stand_in, mode=BranchMode.RERUN, keep=True).branch(turn, 0)


def answers(rollout: Rollout | None, count: int) -> list[str | None]:
    assert rollout is not None
    return [call.response for call in rollout.trajectory.calls[:count]]


def ask(content: str, *, index: int = 0, **fields: Any) -> UpstreamRequest:
    body = {"model": "m", "messages": [{"role": "user", "content": content}], **fields}
    return UpstreamRequest(dialect=Dialect.CHAT, body=json.dumps(body).encode(), index=index, timeout_s=1)


def test_order_of_members_and_sampling_parameters_do_not_count() -> None:
    plain = ask("go", temperature=0)
    other = replace(plain, body=b'{"messages":[{"content":"go","role":"user"}],"model":"n"}')
    assert asked_by(plain) == asked_by(other)
    assert asked_by(plain) != asked_by(ask("go!"))
    assert asked_by(plain) != asked_by(ask("go", tools=[{}]))
    with pytest.raises(ModelRejected, match="cannot be read"):
        asked_by(replace(plain, body=b"{"))


class Titled(FakeHarness):
    """Asks for a title beside its work, before or after its first turn."""

    def __init__(self, *, late: bool) -> None:
        super().__init__()
        self.late = late

    async def run(
        self, task: Task, sandbox: Sandbox, model: ModelEndpoint, tools: Sequence[Tool], limits: Limits
    ) -> HarnessResult:
        if not self.late:
            await self._title(model)
            return await super().run(task, sandbox, model, tools, limits)
        result = await super().run(task, sandbox, model, tools, limits)
        await self._title(model)
        return result

    async def _title(self, model: ModelEndpoint) -> None:
        await chat(model, [{"role": "system", "content": "Make a title."}])


@pytest.mark.parametrize("late", [False, True])
async def test_side_calls_are_no_turns_and_may_come_in_another_order(parts: RolloutParts, late: bool) -> None:
    model = FakeModel([*REPLIES, FakeReply(text="all")], side=FakeReply(text="A title"))
    parts = replace(parts, harness=Titled(late=False), model=model)
    rollout = await rollout_of(parts)
    assert Recording.of(rollout.trajectory).turns == (1, 2, 3, 4)
    parts = replace(parts, harness=Titled(late=late), model=FakeModel(["over"], side=FakeReply(text="New")))
    branch = await branch_at(2, rollout, parts)
    assert (branch.invalid, branch.answers) == ("", 1 + late)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_harness_that_reads_streams_hears_recorded_answers_as_streams(
    parts: RolloutParts, stream: bool
) -> None:
    parts = replace(parts, harness=load_harness("react", stream=stream), model=FakeModel(REPLIES))
    rollout = await rollout_of(parts)
    submit = FakeModel([FakeReply.call("submit", answer="x")])
    branch = await branch_at(2, rollout, parts, submit)
    assert branch.invalid == ""
    assert answers(branch.record, 2) == answers(rollout, 2)
    assert branch.record is not None
    for mine, theirs in zip(branch.record.trajectory.calls[:2], rollout.trajectory.calls, strict=False):
        assert mine.streamed is stream
        assert (mine.completion_tokens, mine.logprobs) == (theirs.completion_tokens, theirs.logprobs)
        assert mine.completion_tokens is not None


async def test_an_engine_that_takes_ids_goes_on_from_the_very_ids_that_were_recorded(
    parts: RolloutParts,
) -> None:
    said = [reply.message() for reply in REPLIES]
    parts = replace(parts, model=ScriptedTokenModel([*said, {"content": "all"}]))
    rollout = await rollout_of(parts)
    engine = ScriptedTokenModel([{"content": "over"}])
    branch = await branch_at(2, rollout, parts, engine)
    assert branch.invalid == ""
    before = Recording.of(rollout.trajectory).calls[2]
    assert [list(prompt) for prompt in engine.upstreams[0].prompts] == [list(before.prompt or ())]


async def test_a_seed_that_the_harness_sends_is_the_branchs_own_after_the_turn(parts: RolloutParts) -> None:
    model = FakeModel(REPLIES)
    parts = replace(parts, harness=load_harness("react", extra_body={"seed": 7}), model=model)
    rollout = await rollout_of(parts)
    assert set(sent_seeds(model)) == {7}
    own = FakeModel(["over"])
    branch = await branch_at(1, rollout, parts, own)
    assert set(sent_seeds(own)) == {branch.seed}


def sent_seeds(model: FakeModel) -> list[int]:
    return [json.loads(request.body)["seed"] for request in model.upstreams[-1].requests]


async def test_the_same_request_again_gets_the_answers_in_their_order(parts: RolloutParts) -> None:
    class Asking(FakeHarness):
        async def run(self, *given: Any) -> HarnessResult:
            for _ in range(3):
                await chat(given[2], [{"role": "user", "content": "again"}])
            return HarnessResult(stop=StopReason.ANSWERED)

    parts = replace(parts, harness=Asking(), model=FakeModel(["one", "two", "three"]))
    rollout = await rollout_of(parts)
    recording = Recording.of(rollout.trajectory)
    replay = Replay(recording, until=2)
    taken = [replay.take(ask("again", index=index)) for index in range(4)]
    assert [recorded and json.loads(recorded.message)["content"] for recorded in taken] == [
        "one", "two", None, None,
    ]  # fmt: skip
    assert replay.live_from == 2


async def test_a_call_that_failed_and_was_asked_again_is_answered_at_once(parts: RolloutParts) -> None:
    class Patient(FakeHarness):
        async def run(
            self, task: Task, sandbox: Sandbox, model: ModelEndpoint, tools: Sequence[Tool], limits: Limits
        ) -> HarnessResult:
            try:
                return await super().run(task, sandbox, model, tools, limits)
            except ModelRejected:
                return await super().run(task, sandbox, model, tools, limits)

    refused = FakeReply(error=ModelRejected("not now", status=400))
    parts = replace(parts, harness=Patient(), model=FakeModel([refused, *REPLIES, FakeReply(text="all")]))
    rollout = await rollout_of(parts)
    branch = await branch_at(1, rollout, parts, FakeModel(["over"]))
    assert (branch.invalid, branch.answers) == ("", 1)


async def test_after_a_difference_nothing_is_answered_any_more(parts: RolloutParts) -> None:
    rollout = await recorded(parts)
    replay = Replay(Recording.of(rollout.trajectory), until=3)
    for _ in range(2):
        with pytest.raises(ModelRejected, match="differs"):
            replay.take(ask("?"))
    assert replay.over.is_set()
