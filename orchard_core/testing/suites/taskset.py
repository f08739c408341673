"""The contract suite of task sets."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import sysconfig
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import ClassVar

import pytest

from orchard_core.reward.contract import Reward
from orchard_core.sandbox.contract import Sandbox, SandboxProvider
from orchard_core.tasks.contract import TaskSet, Tool
from orchard_core.testing.collect import evidence_of
from orchard_core.testing.fakes.grading import FakeGrading
from orchard_core.testing.suites.provided import ProvidedSuite
from orchard_core.types.sandbox import SandboxSpec
from orchard_core.types.task import Solution, Task, VerifyIn
from orchard_core.types.tool import ToolResult


class TaskSetSuite(ProvidedSuite):
    """Subclasses give the fixture `taskset`, and `make_provider` where its tasks need a real sandbox."""

    sample: ClassVar[int] = 2
    """How many tasks are run in sandboxes, spread over the set."""
    solvable: ClassVar[bool] = True
    """The tasks have known solutions that score in full."""
    full_score: ClassVar[float] = 1.0
    """What a known solution scores."""
    step_timeout_s: ClassVar[float] = 120.0
    """Limit of one command of a known solution, seconds."""

    def sampled(self, taskset: TaskSet) -> list[Task]:
        """A few tasks, spread over the set."""
        tasks = list(taskset.tasks())
        return tasks[:: max(1, len(tasks) // self.sample)][: self.sample]

    async def test_there_are_tasks_with_unique_safe_ids(self, taskset: TaskSet) -> None:
        """Ids name files and rows: unique, of letters, digits, dot, dash and underscore, never a dot path."""
        assert isinstance(taskset, TaskSet)
        ids = [task.id for task in taskset.tasks()]
        assert ids
        assert len(set(ids)) == len(ids)
        assert [name for name in ids if not re.fullmatch(r"[A-Za-z0-9._-]{1,200}", name)] == []
        assert {".", ".."}.isdisjoint(ids)

    async def test_the_order_never_changes(self, taskset: TaskSet) -> None:
        """Resume and `--limit` rely on the order: sort, never follow a set or a directory's own order."""
        assert list(taskset.tasks()) == list(taskset.tasks())

    async def test_tasks_are_complete(self, taskset: TaskSet) -> None:
        """A task without words, limits or digest runs and means nothing: fill every field that counts."""
        for task in taskset.tasks():
            assert task.instruction.strip(), task.id
            assert task.taskset == taskset.name, task.id
            assert task.workdir.startswith("/"), task.id
            assert task.agent_timeout_s > 0, task.id
            assert task.verifier_timeout_s > 0, task.id
            assert task.digest, task.id
            assert all(path.startswith("/") and ".." not in path.split("/") for path in task.artifacts), (
                task.id
            )
            assert Task.model_validate_json(task.model_dump_json()) == task

    async def test_what_was_left_out_is_listed(self, taskset: TaskSet) -> None:
        """A broken task that vanishes silently raises the score: one line for each, after `tasks`."""
        list(taskset.tasks())
        problems = taskset.problems()
        assert all(isinstance(line, str) and line.strip() and "\n" not in line for line in problems)
        list(taskset.tasks())
        assert list(taskset.problems()) == list(problems)

    async def test_every_task_has_its_spec_and_reward(self, taskset: TaskSet) -> None:
        """The runner asks for both before it starts: they must agree with the task."""
        for task in taskset.tasks():
            assert isinstance(taskset.spec(task), SandboxSpec)
            reward = taskset.reward(task)
            assert isinstance(reward, Reward)
            assert reward.needs_own_sandbox == (task.verify_in is VerifyIn.SAME_SANDBOX), task.id
            if task.verify_in is VerifyIn.FRESH and not reward.needs_own_sandbox:
                assert reward.version == taskset.reward(task).version

    async def test_solutions_have_steps(self, taskset: TaskSet) -> None:
        """The oracle plays them one command a turn: none, or at least one command, each with words in it."""
        for task in taskset.tasks():
            solution = taskset.solution(task)
            if solution is None:
                continue
            assert isinstance(solution, Solution)
            assert solution.steps or solution.answer, task.id
            assert all(step.command.strip() for step in solution.steps), task.id

    async def test_solutions_are_not_in_what_the_agent_or_the_record_sees(self, taskset: TaskSet) -> None:
        """A solution in the task's metadata leaks into prompts and datasets: keep it in `solution`."""
        for task in taskset.tasks():
            solution = taskset.solution(task)
            seen = task.model_dump_json()
            for step in solution.steps if solution else ():
                assert len(step.command) < 40 or step.command not in seen, task.id

    async def test_nothing_of_a_task_runs_on_the_host(self, taskset: TaskSet) -> None:
        """Task code is hostile: specs, rewards and solutions import none of it and change nothing."""
        modules, paths, cwd, env = set(sys.modules), list(sys.path), Path.cwd(), dict(os.environ)
        for task in taskset.tasks():
            taskset.spec(task), taskset.reward(task), taskset.solution(task)
        strange = [name for name in set(sys.modules) - modules if not _installed(sys.modules[name])]
        assert strange == []
        assert (sys.path, Path.cwd(), dict(os.environ)) == (paths, cwd, env)

    async def test_a_session_prepares_and_gives_tools(
        self, taskset: TaskSet, provider: SandboxProvider
    ) -> None:
        """Tools reach the model by name and schema: names are unique and valid, schemas are of objects."""
        for task in self.sampled(taskset):
            async with await provider.create(taskset.spec(task)) as sandbox:
                async with taskset.session(task, sandbox) as tools:
                    _check_tools(tools)
                    assert await sandbox.alive()
                assert await sandbox.alive(), "the sandbox is the runner's to close"

    async def test_a_session_cleans_up_after_an_error(
        self, taskset: TaskSet, provider: SandboxProvider
    ) -> None:
        """An agent's crash must not be hidden nor leave services: pass it on, and stop what was started."""
        task = self.sampled(taskset)[0]
        async with await provider.create(taskset.spec(task)) as sandbox:
            with pytest.raises(RuntimeError, match="the agent broke"):
                async with taskset.session(task, sandbox):
                    raise RuntimeError("the agent broke")
            async with taskset.session(task, sandbox):
                assert await sandbox.alive()

    async def test_sessions_run_side_by_side(self, taskset: TaskSet, provider: SandboxProvider) -> None:
        """Attempts at one task run at once: no port, path or object of one may be another's."""
        task = self.sampled(taskset)[0]

        async def one() -> bool:
            async with _prepared(taskset, task, provider) as (sandbox, _):
                return (await sandbox.exec(["true"], cwd=task.workdir)).ok

        assert all(await asyncio.gather(one(), one()))

    async def test_the_workdir_is_there(self, taskset: TaskSet, provider: SandboxProvider) -> None:
        """The agent starts in `task.workdir`: the spec or the session makes it."""
        for task in self.sampled(taskset):
            async with _prepared(taskset, task, provider) as (sandbox, _):
                assert (await sandbox.exec(["true"], cwd=task.workdir)).ok

    async def test_wrong_arguments_are_answered_not_raised(
        self, taskset: TaskSet, provider: SandboxProvider
    ) -> None:
        """Models send nonsense: a tool answers with `is_error` and says what to send; it never raises."""
        for task in self.sampled(taskset):
            async with _prepared(taskset, task, provider) as (_, tools):
                for tool in tools:
                    result = await tool.call({"no_such_argument": [1, None]})
                    assert isinstance(result, ToolResult)

    async def test_known_solutions_score_in_full_and_doing_nothing_does_not(
        self, taskset: TaskSet, provider: SandboxProvider
    ) -> None:
        """A task whose own solution fails, or that a no-op passes, measures nothing: quarantine it."""
        if not self.solvable:
            pytest.skip("the task set has no known solutions")
        for task in self.sampled(taskset):
            solution = taskset.solution(task)
            assert solution is not None, task.id
            assert await self._score(taskset, task, provider, solution) == self.full_score, task.id
            nothing = await self._score(taskset, task, provider, Solution(steps=()))
            assert nothing is None or nothing < self.full_score, task.id

    async def _score(
        self, taskset: TaskSet, task: Task, provider: SandboxProvider, solution: Solution
    ) -> float | None:
        async with await provider.create(taskset.spec(task)) as sandbox:
            async with taskset.session(task, sandbox):
                await self._play(sandbox, task, solution)
                evidence = await evidence_of(task, sandbox)
            reward = taskset.reward(task)
            if reward.needs_own_sandbox:
                await sandbox.reset_processes()
            own = sandbox if reward.needs_own_sandbox else None
            grading = FakeGrading(provider, own=own, deadline_s=task.verifier_timeout_s)
            return (await reward.score(evidence, grading)).score

    async def _play(self, sandbox: Sandbox, task: Task, solution: Solution) -> None:
        for step in solution.steps:
            await sandbox.exec(step.command, cwd=task.workdir, timeout=self.step_timeout_s)


@asynccontextmanager
async def _prepared(
    taskset: TaskSet, task: Task, provider: SandboxProvider
) -> AsyncIterator[tuple[Sandbox, Sequence[Tool]]]:
    async with (
        await provider.create(taskset.spec(task)) as sandbox,
        taskset.session(task, sandbox) as tools,
    ):
        yield sandbox, tools


def _check_tools(tools: Sequence[Tool]) -> None:
    names = [tool.name for tool in tools]
    assert len(set(names)) == len(names)
    for tool in tools:
        assert isinstance(tool, Tool)
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", tool.name)
        assert tool.description.strip()
        assert tool.parameters.get("type") == "object"


def _installed(module: object) -> bool:
    file = getattr(module, "__file__", None)
    if file is None:
        return True
    own = Path(__file__).parents[2]
    homes = [own, *(Path(path) for path in sysconfig.get_paths().values()), Path(sys.base_prefix)]
    return any(home in Path(file).parents for home in homes)
