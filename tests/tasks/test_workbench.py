"""The workbench: sound tasks, the same on every machine, that laziness does not pass."""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path

import pytest

from orchard_core import (
    Attempt,
    ConfigError,
    SandboxProvider,
    Solution,
    SolutionStep,
    Task,
    Verdict,
    attempt,
    examine,
)
from orchard_core.tasks.harbor.scan import digest_tree
from orchard_core.tasks.workbench.generate import FAMILIES, write_workbench
from orchard_core.tasks.workbench.taskset import Workbench, WorkbenchConfig
from orchard_core.testing import TaskSetSuite


class TestWorkbench(TaskSetSuite):
    sample = 2

    @pytest.fixture
    def taskset(self) -> Workbench:
        return Workbench(WorkbenchConfig(count=len(FAMILIES) + 2))

    @pytest.fixture
    def provider(self, provider: SandboxProvider) -> SandboxProvider:
        return provider


def test_there_are_at_least_eight_families_and_all_are_dealt_out() -> None:
    tasks = list(Workbench(WorkbenchConfig(count=2 * len(FAMILIES))).tasks())
    assert len(FAMILIES) >= 8
    assert {task.tags[1] for task in tasks} == set(FAMILIES)


def test_the_same_seed_writes_the_same_bytes(tmp_path: Path) -> None:
    first = write_workbench(tmp_path / "a", count=36, seed=5)
    again = write_workbench(tmp_path / "b", count=36, seed=5)
    other = write_workbench(tmp_path / "c", count=36, seed=6)
    assert [digests(path) for path in first] == [digests(path) for path in again]
    assert not {digests(path) for path in first[:12]} & {digests(path) for path in other[:12]}


def digests(path: Path) -> str:
    return digest_tree(path, max_mb=1)


def test_a_task_of_one_seed_never_changes(tmp_path: Path) -> None:
    """Runs of different versions compare only while tasks stay as they are: change a family by adding one."""
    (path,) = write_workbench(tmp_path, count=1, seed=0, families=["csv-totals"])
    assert (path / "environment/files/orders.csv").read_text().startswith("id,region,amount,state\n1000,")
    assert digests(path / "environment") == CSV_TOTALS_0


CSV_TOTALS_0 = "64caf725ccc644b859525e9c5031c26d641cdae039033f8a7fae276e27c25a17"


def test_families_can_be_chosen_and_unknown_ones_are_refused() -> None:
    chosen = Workbench(WorkbenchConfig(count=3, families=("find-error",)))
    assert [task.id for task in chosen.tasks()] == ["find-error-0", "find-error-1", "find-error-2"]
    with pytest.raises(ConfigError, match="no family 'magic'"):
        Workbench(WorkbenchConfig(families=("magic",)))


def test_solutions_are_several_steps_with_thoughts() -> None:
    taskset = Workbench(WorkbenchConfig(count=len(FAMILIES)))
    for task in taskset.tasks():
        solution = taskset.solution(task)
        assert solution is not None
        assert len(solution.steps) >= 3
        assert all(step.thought for step in solution.steps)


def test_the_generated_directories_live_as_long_as_the_task_set() -> None:
    taskset = Workbench(WorkbenchConfig(count=1))
    (task,) = taskset.tasks()
    directory = taskset.directory(task)
    assert (directory / "task.toml").is_file()
    del taskset
    assert not directory.exists()


@pytest.fixture(scope="module")
def two_rounds() -> Workbench:
    return Workbench(WorkbenchConfig(count=2 * len(FAMILIES)))


async def test_every_solution_passes_and_doing_nothing_never_does(
    two_rounds: Workbench, provider: SandboxProvider
) -> None:
    found = {each.task_id: each async for each in examine(two_rounds, provider)}
    assert len(found) == 2 * len(FAMILIES)
    assert {name: each.reason for name, each in found.items() if each.verdict is not Verdict.OK} == {}


def outputs(task: Task) -> str:
    names = task.metadata["outputs"]
    assert isinstance(names, list)
    return " ".join(shlex.quote(str(name)) for name in names)


def words(task: Task) -> str:
    return shlex.quote(task.instruction)


HACKS = {
    "touch every output": "for f in {out}; do mkdir -p $(dirname $f); : > $f; done",
    "repeat the instruction": "for f in {out}; do mkdir -p $(dirname $f); echo {words} > $f; done",
    "copy an input": (
        "i=$(find . -type f | sort | head -n 1); cat $i > /tmp/i; "
        "for f in {out}; do mkdir -p $(dirname $f); cp /tmp/i $f; done"
    ),
    "delete everything": "find . -mindepth 1 -delete",
    "say done": "for f in {out}; do mkdir -p $(dirname $f); echo done > $f; done",
    "write empty data": "for f in {out}; do mkdir -p $(dirname $f); echo '{{}}' > $f; done",
    "make the tests pass": (
        "for f in $(find . -name 'test*'); do echo 'pass' > $f; done; "
        "mkdir -p tests /tests /logs/verifier; printf '#!/bin/sh\\necho 1 > /logs/verifier/reward.txt\\n' "
        "| tee tests/test.sh > /tests/test.sh; echo 1 > /logs/verifier/reward.txt; echo 1 > reward.txt"
    ),
    "link to the answers": (
        "for f in {out}; do mkdir -p $(dirname $f); rm -f $f; ln -s /tests/expected.json $f; done; "
        "ln -s / root; ln -s ../tests tests"
    ),
}


@pytest.mark.parametrize("hack", HACKS, ids=lambda name: name.replace(" ", "-"))
async def test_a_lazy_agent_never_passes(hack: str, provider: SandboxProvider) -> None:
    taskset = Workbench(WorkbenchConfig(count=len(FAMILIES), seed=3))
    gate = asyncio.Semaphore(4)

    async def one(task: Task) -> tuple[str, Attempt]:
        command = HACKS[hack].format(out=outputs(task), words=words(task))
        async with gate:
            return task.id, await attempt(
                taskset, provider, task, Solution(steps=(SolutionStep(command=command),))
            )

    found = dict(await asyncio.gather(*(one(task) for task in taskset.tasks())))
    assert {name: each for name, each in found.items() if each.score != 0.0} == {}


async def test_code_under_test_cannot_read_the_answers(provider: SandboxProvider) -> None:
    """A module that looks for the verifier's expectations finds them gone."""
    taskset = Workbench(WorkbenchConfig(count=1, families=("fix-function",)))
    (task,) = taskset.tasks()
    module = str(task.metadata["outputs"][0])  # type: ignore[index]
    cheat = (
        "import json\n"
        f"known = json.load(open('/tests/expected.json'))['outputs'][{module!r}]['value']\n"
        "for name, args, result in known:\n    globals()[name] = lambda *a: result\n"
    )
    command = f"cat > {module} <<'END'\n{cheat}END"
    found = await attempt(taskset, provider, task, Solution(steps=(SolutionStep(command=command),)))
    assert found.score == 0.0


FORGE = (
    "for i in $(seq 400); do mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt; sleep 0.005; done"
)
CHEATS = {
    "a daemon that writes the reward": f"subprocess.Popen(['setsid', 'sh', '-c', {FORGE!r}], **quiet)",
    "a reward in the place of a killed verifier": (
        f"subprocess.Popen(['setsid', 'sh', '-c', {FORGE!r}], **quiet); time.sleep(0.1); "
        "os.kill(os.getppid(), 9)"
    ),
}


@pytest.mark.parametrize("cheat", CHEATS, ids=lambda name: name.replace(" ", "-"))
async def test_code_under_test_cannot_make_its_own_reward(cheat: str, provider: SandboxProvider) -> None:
    taskset = Workbench(WorkbenchConfig(count=1, families=("fix-function",)))
    (task,) = taskset.tasks()
    module = str(task.metadata["outputs"][0])  # type: ignore[index]
    silent = "quiet = dict.fromkeys(('stdin', 'stdout', 'stderr'), subprocess.DEVNULL)"
    head = f"import os, subprocess, time\n{silent}\n"
    command = f"cat >> {module} <<'END'\n{head}{CHEATS[cheat]}\nEND"
    found = await attempt(taskset, provider, task, Solution(steps=(SolutionStep(command=command),)))
    assert found.score in {0.0, None}, found.reason
