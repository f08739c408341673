"""Harnesses with one fault each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from orchard_core import (
    HarnessResult,
    Limits,
    ModelEndpoint,
    ModelError,
    OrchardError,
    Sandbox,
    SandboxError,
    StopReason,
    Task,
    Tool,
    ToolResult,
)
from orchard_core.testing import (
    FakeHarness,
    HarnessSuite,
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
