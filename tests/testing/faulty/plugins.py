"""Harnesses, rewards, task sets, models and trainers with one fault each."""

from __future__ import annotations

import dataclasses
import json
import random
import sys
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from orchard_core import (
    Checkpoint,
    Evidence,
    Grading,
    HarnessResult,
    Limits,
    ModelEndpoint,
    ModelError,
    OrchardError,
    Outcome,
    RecordCorrupt,
    RewardResult,
    Sandbox,
    SandboxError,
    SandboxSpec,
    SessionContext,
    StopReason,
    Task,
    Tool,
    ToolResult,
    TrainRequest,
    Trajectory,
    UpstreamReply,
    UpstreamRequest,
    Usage,
)
from orchard_core.testing import (
    ANSWER_PATH,
    FakeBlobs,
    FakeHarness,
    FakeModel,
    FakeReply,
    FakeReward,
    FakeTaskSet,
    FakeTool,
    FakeTrainer,
    FakeUpstream,
    HarnessSuite,
    ModelSuite,
    RewardSuite,
    TaskSetSuite,
    TrainerSuite,
    file_holds,
)

RunArguments = tuple[Task, Sandbox, ModelEndpoint, Sequence[Tool], Limits]


class _AskedOnce(FakeHarness):
    """Passes its arguments through `before` and its result through `after`."""

    async def run(
        self, task: Task, sandbox: Sandbox, model: ModelEndpoint, tools: Sequence[Tool], limits: Limits
    ) -> HarnessResult:
        result = await super().run(*self.before(task, sandbox, model, tools, limits))
        return self.after(result, model)

    def before(self, *given: Any) -> RunArguments:
        return given

    def after(self, result: HarnessResult, model: ModelEndpoint) -> HarnessResult:
        return result


class _Answered(FakeHarness):
    """Calls every end a success."""

    swallows: type[Exception] = OrchardError

    async def run(
        self, task: Task, sandbox: Sandbox, model: ModelEndpoint, tools: Sequence[Tool], limits: Limits
    ) -> HarnessResult:
        try:
            return await super().run(task, sandbox, model, tools, limits)
        except self.swallows:
            return HarnessResult(stop=StopReason.ANSWERED)


class TestTurnsUnlimited(HarnessSuite):
    caught_by = "test_the_turn_limit_stops_it"

    @pytest.fixture
    def harness(self) -> FakeHarness:
        class Harness(_AskedOnce):
            def before(self, *given: Any) -> RunArguments:
                return (*given[:4], Limits())

        return Harness()


class TestAModelsErrorSwallowed(HarnessSuite):
    caught_by = "test_a_model_that_fails_is_not_a_success"

    @pytest.fixture
    def harness(self) -> FakeHarness:
        class Harness(_Answered):
            swallows = ModelError

        return Harness()


class TestASandboxsErrorSwallowed(HarnessSuite):
    caught_by = "test_a_sandbox_that_is_gone_is_not_a_success"

    @pytest.fixture
    def harness(self) -> FakeHarness:
        class Harness(_Answered):
            swallows = SandboxError

        return Harness()


class TestTheTasksToolsForgotten(HarnessSuite):
    caught_by = "test_a_tasks_tool_is_called_and_heard"

    @pytest.fixture
    def harness(self) -> FakeHarness:
        class Harness(_AskedOnce):
            def before(self, *given: Any) -> RunArguments:
                return (*given[:3], (), given[4])

        return Harness()


class TestTheKeyInTheResult(HarnessSuite):
    caught_by = "test_the_session_key_is_not_in_the_result"

    @pytest.fixture
    def harness(self) -> FakeHarness:
        class Harness(_AskedOnce):
            def after(self, result: HarnessResult, model: ModelEndpoint) -> HarnessResult:
                return result.model_copy(update={"message": f"asked with {model.api_key}"})

        return Harness()


class TestStateKeptBetweenRuns(HarnessSuite):
    caught_by = "test_a_second_run_knows_nothing_of_the_first"

    @pytest.fixture
    def harness(self) -> FakeHarness:
        class Harness(_AskedOnce):
            history = ""

            def before(self, *given: Any) -> RunArguments:
                task: Task = given[0]
                Harness.history += task.instruction
                return (task.model_copy(update={"instruction": Harness.history}), *given[1:])

        return Harness()


class TestMalformedCallsThatCrash(HarnessSuite):
    caught_by = "test_malformed_answers_do_not_crash_it"

    @pytest.fixture
    def harness(self) -> FakeHarness:
        class Harness(FakeHarness):
            async def _act(
                self, call: Any, task: Task, sandbox: Sandbox, tools: Sequence[Tool]
            ) -> ToolResult:
                done = await sandbox.exec(json.loads(call["function"]["arguments"])["command"])
                return ToolResult.text(done.text)

        return Harness()


class _Rewarded(RewardSuite):
    @pytest.fixture
    def solved(self) -> Evidence:
        return evidence(b"42")

    @pytest.fixture
    def failed(self) -> Evidence:
        return evidence(b"41")


class TestARewardThatCannotFail(_Rewarded):
    caught_by = "test_failed_evidence_gets_less"

    @pytest.fixture
    def reward(self) -> FakeReward:
        return FakeReward(1.0)


class TestAScoreThatIsNoNumber(_Rewarded):
    caught_by = "test_a_score_is_a_finite_number_with_its_origin"

    @pytest.fixture
    def reward(self) -> FakeReward:
        return FakeReward(float("nan"))


class TestLostArtifactsScoredZero(_Rewarded):
    caught_by = "test_lost_artifacts_are_no_score"

    @pytest.fixture
    def reward(self) -> FakeReward:
        async def judge(found: Evidence, grading: Grading) -> float:
            try:
                return await file_holds(ANSWER_PATH, b"42")(found, grading)
            except RecordCorrupt:
                return 0.0

        return FakeReward(judge)


class TestASandboxLeftOpen(_Rewarded):
    caught_by = "test_no_sandbox_is_left_open"

    @pytest.fixture
    def reward(self) -> FakeReward:
        async def judge(found: Evidence, grading: Grading) -> float:
            await grading.fresh(SandboxSpec()).__aenter__()
            return await file_holds(ANSWER_PATH, b"42")(found, grading)

        return FakeReward(judge)


class TestARewardThatRemembers(_Rewarded):
    caught_by = "test_the_same_evidence_scores_the_same"

    @pytest.fixture
    def reward(self) -> FakeReward:
        seen: list[Evidence] = []

        async def judge(found: Evidence, grading: Grading) -> float:
            seen.append(found)
            return 1.0 / len(seen)

        return FakeReward(judge)


class TestTheAgentsSandboxUnmarked(_Rewarded):
    caught_by = "test_judging_in_the_agents_sandbox_is_marked"

    @pytest.fixture
    def reward(self) -> FakeReward:
        class Reward(FakeReward):
            async def score(self, found: Evidence, grading: Grading) -> RewardResult:
                result = await super().score(found, grading)
                return result.model_copy(update={"same_sandbox": False})

        return Reward(needs_own_sandbox=True)


class TestIdsThatRepeat(TaskSetSuite):
    caught_by = "test_there_are_tasks_with_unique_safe_ids"

    @pytest.fixture
    def taskset(self) -> FakeTaskSet:
        return FakeTaskSet([task(), task()])


class TestIdsThatLeaveTheirDirectory(TaskSetSuite):
    caught_by = "test_there_are_tasks_with_unique_safe_ids"

    @pytest.fixture
    def taskset(self) -> FakeTaskSet:
        return FakeTaskSet([task(id="../escape")])


class TestAnOrderThatChanges(TaskSetSuite):
    caught_by = "test_the_order_never_changes"

    @pytest.fixture
    def taskset(self) -> FakeTaskSet:
        class Shuffled(FakeTaskSet):
            turn = 0

            def tasks(self) -> Sequence[Task]:
                self.turn += 1
                return list(super().tasks())[:: -1 if self.turn % 2 else 1]

        return Shuffled([task(id="a"), task(id="b")])


class TestTaskCodeImported(TaskSetSuite):
    caught_by = "test_nothing_of_a_task_runs_on_the_host"

    @pytest.fixture
    def taskset(self, tmp_path: Path) -> FakeTaskSet:
        (tmp_path / "hostile_task_code.py").write_text("")

        class Importing(FakeTaskSet):
            def tasks(self) -> Sequence[Task]:
                sys.path.insert(0, str(tmp_path))
                __import__("hostile_task_code")
                sys.path.remove(str(tmp_path))
                return super().tasks()

        return Importing([task()])


class TestTheSolutionInTheRecord(TaskSetSuite):
    caught_by = "test_solutions_are_not_in_what_the_agent_or_the_record_sees"

    @pytest.fixture
    def taskset(self) -> FakeTaskSet:
        from orchard_core import Solution, SolutionStep

        command = "printf 42 > answer.txt # the whole known solution of this task"
        leaking = task(metadata={"solution": command})
        return FakeTaskSet([leaking], solutions={"t": Solution(steps=(SolutionStep(command=command),))})


class TestASessionThatHidesTheCrash(TaskSetSuite):
    caught_by = "test_a_session_cleans_up_after_an_error"

    @pytest.fixture
    def taskset(self) -> FakeTaskSet:
        class Hiding(FakeTaskSet):
            @asynccontextmanager
            async def _session(self, given: Task, sandbox: Sandbox) -> AsyncIterator[Sequence[Tool]]:
                with suppress(RuntimeError):
                    yield ()

        return Hiding([task()])


class TestAToolThatRaises(TaskSetSuite):
    caught_by = "test_wrong_arguments_are_answered_not_raised"

    @pytest.fixture
    def taskset(self) -> FakeTaskSet:
        return FakeTaskSet([task()], tools=[FakeTool(act=lambda args: ToolResult.text(str(args["words"])))])


class TestATaskThatANoOpPasses(TaskSetSuite):
    caught_by = "test_known_solutions_score_in_full_and_doing_nothing_does_not"

    @pytest.fixture
    def taskset(self) -> FakeTaskSet:
        good = FakeTaskSet.of(1)
        known = good.solution(good.tasks()[0])
        assert known is not None
        return FakeTaskSet([task()], solutions={"t": known})


class _Modelled(ModelSuite):
    upstream_type: type[FakeUpstream] = FakeUpstream

    @pytest.fixture
    def model(self) -> FakeModel:
        upstream_type = self.upstream_type

        class Model(FakeModel):
            def upstream(self, context: SessionContext) -> FakeUpstream:
                return upstream_type(super().upstream(context)._next)

        return Model(["Well, hello there."])


class TestAStreamThatLosesText(_Modelled):
    caught_by = "test_a_stream_says_what_the_whole_answer_says"

    class upstream_type(FakeUpstream):  # noqa: N801
        async def stream(self, request: UpstreamRequest) -> AsyncIterator[bytes]:
            first = True
            async for payload in super().stream(request):
                if first or b"content" not in payload:
                    yield payload
                first = False


class TestAStreamWithItsFraming(_Modelled):
    caught_by = "test_a_stream_is_bare_payloads"

    class upstream_type(FakeUpstream):  # noqa: N801
        async def stream(self, request: UpstreamRequest) -> AsyncIterator[bytes]:
            async for payload in super().stream(request):
                yield b"data: " + payload + b"\n\n"


class TestCachedTokensCountedTwice(_Modelled):
    caught_by = "test_usage_never_overlaps"

    class upstream_type(FakeUpstream):  # noqa: N801
        async def complete(self, request: UpstreamRequest) -> UpstreamReply:
            reply = await super().complete(request)
            used = reply.usage or Usage()
            return dataclasses.replace(reply, usage=used.model_copy(update={"cache_read": used.input}))


class TestLogProbabilitiesMissing(_Modelled):
    caught_by = "test_token_ids_fit_their_log_probabilities"

    class upstream_type(FakeUpstream):  # noqa: N801
        async def complete(self, request: UpstreamRequest) -> UpstreamReply:
            reply = await super().complete(request)
            return dataclasses.replace(reply, logprobs=(reply.logprobs or [0.0])[1:])


class TestABrokenRequestThatCrashes(_Modelled):
    caught_by = "test_a_broken_request_is_a_typed_error"

    class upstream_type(FakeUpstream):  # noqa: N801
        async def complete(self, request: UpstreamRequest) -> UpstreamReply:
            json.loads(request.body)
            return await super().complete(request)


class TestAScriptSharedBySessions(ModelSuite):
    caught_by = "test_sessions_do_not_share_a_script"

    @pytest.fixture
    def model(self) -> FakeModel:
        left = iter(["one", "two", "three"])
        return FakeModel(otherwise=lambda request: FakeReply(text=next(left)))


class TestAResumeFromScratch(TrainerSuite):
    caught_by = "test_resuming_what_is_done_trains_nothing"

    @pytest.fixture
    def trainer(self) -> FakeTrainer:
        class Trainer(FakeTrainer):
            async def train(self, request: TrainRequest) -> Checkpoint:
                return await super().train(dataclasses.replace(request, resume=False))

        return Trainer()


class TestAResumeThatForgetsItsState(TrainerSuite):
    caught_by = "test_a_resumed_run_equals_one_that_was_never_cut"

    @pytest.fixture
    def trainer(self) -> FakeTrainer:
        class Trainer(FakeTrainer):
            async def train(self, request: TrainRequest) -> Checkpoint:
                for state in _states(request.out) if request.resume else ():
                    state.write_text("fresh optimiser")
                return await super().train(request)

        return Trainer()


class TestASeedThatIsIgnored(TrainerSuite):
    caught_by = "test_the_same_seed_gives_the_same_model"

    @pytest.fixture
    def trainer(self) -> FakeTrainer:
        class Trainer(FakeTrainer):
            async def train(self, request: TrainRequest) -> Checkpoint:
                return await super().train(dataclasses.replace(request, seed=random.getrandbits(60)))

        return Trainer()


class TestUnknownOptionsTaken(TrainerSuite):
    caught_by = "test_a_request_that_cannot_be_met_is_refused_first"

    @pytest.fixture
    def trainer(self) -> FakeTrainer:
        class Trainer(FakeTrainer):
            async def train(self, request: TrainRequest) -> Checkpoint:
                return await super().train(dataclasses.replace(request, options={}))

        return Trainer()


def task(**fields: Any) -> Task:
    """A task with nothing wrong but what `fields` say."""
    given = {"id": "t", "taskset": "fake", "instruction": "Write 42.", "digest": "1", **fields}
    return Task.model_validate(given)


def evidence(answer: bytes) -> Evidence:
    """What an agent left that answered so."""
    blobs = FakeBlobs()
    artifact = blobs.file(ANSWER_PATH, answer)
    return Evidence(
        task=task(artifacts=(ANSWER_PATH,)),
        trajectory=Trajectory(),
        outcome=Outcome.COMPLETED,
        artifacts={ANSWER_PATH: artifact},
        blobs=blobs,
    )


def _states(out: Path) -> Iterable[Path]:
    return out.glob("step-*/state")
