"""The doctor tells sound tasks from unsound ones, and says why."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from orchard_core import (
    Capabilities,
    Diagnosis,
    Evidence,
    Grading,
    HarborConfig,
    HarborTaskSet,
    Quarantine,
    Reward,
    SandboxProvider,
    SandboxUnavailable,
    Task,
    Verdict,
    examine,
    quarantine,
    write_quarantine,
)
from orchard_core.testing import FakeProvider, FakeReward, FakeTaskSet

CHECK = """#!/bin/sh
if [ "$(cat /workspace/answer.txt)" = 7 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
"""
RIGHT = {"solution/solve.sh": "echo 7 > answer.txt\n"}

MakeTask = Callable[..., Path]


async def diagnose(provider: SandboxProvider, root: Path, repeats: int = 1) -> Diagnosis:
    taskset = HarborTaskSet(HarborConfig(path=root))
    (found,) = [each async for each in examine(taskset, provider, repeats=repeats)]
    return found


async def test_a_sound_task_is_ok_with_both_scores(make_task: MakeTask, provider: SandboxProvider) -> None:
    found = await diagnose(provider, make_task(test=CHECK, **RIGHT))
    assert (found.verdict, found.reason) == (Verdict.OK, "")
    assert [attempt.score for attempt in found.oracle] == [1.0]
    assert found.noop is not None
    assert found.noop.score == 0.0
    assert found.digest


async def test_a_task_that_doing_nothing_passes_is_named(
    make_task: MakeTask, provider: SandboxProvider
) -> None:
    found = await diagnose(provider, make_task(**RIGHT))
    assert found.verdict is Verdict.NOOP_PASSED


async def test_a_wrong_solution_is_named_with_the_step_that_failed(
    make_task: MakeTask, provider: SandboxProvider
) -> None:
    solve = {"solution/solve.sh": "echo 8 > answer.txt\nmissing-program --now\n"}
    found = await diagnose(provider, make_task(test=CHECK, **solve))
    assert found.verdict is Verdict.ORACLE_FAILED
    assert "step 2 of 2 exited with 127" in found.reason
    assert "missing-program" in found.reason


async def test_a_task_without_solution_is_told_apart(make_task: MakeTask, provider: SandboxProvider) -> None:
    assert (await diagnose(provider, make_task(test=CHECK))).verdict is Verdict.NO_SOLUTION


class Wavering(HarborTaskSet):
    """Judges every other play by the tests of another task."""

    judged = 0

    def reward(self, task: Task) -> Reward:
        self.judged += 1
        mild, strict = self.tasks()
        return super().reward(mild if self.judged % 2 else strict)


async def test_a_solution_that_passes_sometimes_is_flaky(
    make_task: MakeTask, provider: SandboxProvider
) -> None:
    make_task("strict", test=CHECK.replace("= 7", "= 8"), **RIGHT)
    taskset = Wavering(HarborConfig(path=make_task("mild", test=CHECK, **RIGHT).parent))
    mild = next(task for task in taskset.tasks() if task.id == "mild")
    (found,) = [each async for each in examine(taskset, provider, repeats=4, tasks=[mild])]
    assert found.verdict is Verdict.FLAKY
    assert "passes 2 of 4 times" in found.reason


@pytest.mark.parametrize(
    ("files", "error"),
    [
        ({"test": "#!/bin/sh\nexit 0\n"}, "RewardMissing"),
        ({"test": "#!/no/such/program\n"}, "VerifierFailed"),
        ({"environment/setup.sh": "exit 1"}, "TaskInvalid"),
        ({"toml": '[environment]\ndocker_image = "none:1"\n'}, "SandboxUnsupported"),
        ({"toml": "[verifier]\ntimeout_sec = 0.3\n", "test": "#!/bin/sh\nsleep 60\n"}, "VerifierTimedOut"),
    ],
)
async def test_a_task_that_cannot_be_run_or_verified_is_broken(
    make_task: MakeTask, provider: SandboxProvider, files: Mapping[str, str], error: str
) -> None:
    found = await diagnose(provider, make_task(**{**RIGHT, **files}))
    assert found.verdict is Verdict.BROKEN
    assert found.reason.startswith(f"{error}: ")
    assert found.noop is not None
    assert found.noop.score is None


async def test_many_tasks_are_examined_side_by_side(make_task: MakeTask, provider: SandboxProvider) -> None:
    for index in range(5):
        root = make_task(f"task-{index}", test=CHECK, **RIGHT)
    taskset = HarborTaskSet(HarborConfig(path=root.parent))
    found = [each.task_id async for each in examine(taskset, provider, concurrency=5)]
    assert sorted(found) == [f"task-{index}" for index in range(5)]


async def test_leaving_early_ends_what_is_in_flight(make_task: MakeTask, provider: SandboxProvider) -> None:
    for index in range(3):
        root = make_task(f"task-{index}", **{"environment/setup.sh": f"sleep {index * 60}"})
    taskset = HarborTaskSet(HarborConfig(path=root.parent))
    before = asyncio.all_tasks()
    diagnoses = examine(taskset, provider, concurrency=3)
    async for found in diagnoses:
        assert found.task_id == "task-0"
        break
    await diagnoses.aclose()
    assert asyncio.all_tasks() == before


async def test_the_quarantine_list_names_the_unsound_ones(
    make_task: MakeTask, provider: SandboxProvider, tmp_path: Path
) -> None:
    make_task("good", test=CHECK, **RIGHT)
    make_task("lenient", **RIGHT)
    root = make_task("silent", test="#!/bin/sh\n", **RIGHT)
    taskset = HarborTaskSet(HarborConfig(path=root.parent))
    listed = quarantine("harbor:x", [each async for each in examine(taskset, provider)])
    assert [each.task_id for each in listed.tasks] == ["lenient", "silent"]
    write_quarantine(tmp_path / "list.json", listed)
    write_quarantine(tmp_path / "list.txt", listed)
    assert Quarantine.model_validate(json.loads((tmp_path / "list.json").read_text())) == listed
    lines = (tmp_path / "list.txt").read_text().splitlines()
    assert [line.split("\t")[0] for line in lines[1:]] == ["lenient", "silent"]


async def test_a_task_set_that_breaks_on_one_task_is_a_diagnosis_of_that_task() -> None:
    async def judge(evidence: Evidence, _: Grading) -> float:
        return float({"write-0": 0.0}[evidence.task.id])

    tasks = list(FakeTaskSet.of(2).tasks())
    taskset = FakeTaskSet(tasks, rewards={task.id: FakeReward(judge) for task in tasks})
    provider = FakeProvider()
    found = {each.task_id: each async for each in examine(taskset, provider)}
    await provider.close()
    assert found["write-0"].noop is not None
    assert found["write-0"].noop.score == 0.0
    assert (found["write-1"].verdict, found["write-1"].reason) == (Verdict.BROKEN, "KeyError: 'write-1'")


async def test_a_host_that_gives_no_sandbox_is_told_before_any_task(make_task: MakeTask) -> None:
    class Nowhere(FakeProvider):
        async def capabilities(self) -> Capabilities:
            raise SandboxUnavailable("no namespaces here")

    taskset = HarborTaskSet(HarborConfig(path=make_task(test=CHECK, **RIGHT)))
    with pytest.raises(SandboxUnavailable):
        await anext(examine(taskset, Nowhere()))
