"""Task sets with one fault each."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from orchard_core import (
    Sandbox,
    Task,
    Tool,
    ToolResult,
)
from orchard_core.testing import (
    FakeTaskSet,
    FakeTool,
    TaskSetSuite,
)
from tests.testing.faulty.making import task


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
