"""claw-bench in real sandboxes."""

from __future__ import annotations

import pytest
from orchard_domain_claw.config import ClawBenchConfig
from orchard_domain_claw.taskset import ClawBench

from orchard_core import SandboxProvider, Solution, SolutionStep, Verdict, attempt, examine
from orchard_core.testing import TaskSetSuite

BROKEN = {"mem-010": "file_a.txt", "sys-008": "syntax error"}
"""Tasks whose own solution fails, and what tells why; README.md names the causes."""


class TestClawBench(TaskSetSuite):
    sample = 3

    @pytest.fixture
    def taskset(self) -> ClawBench:
        return ClawBench(ClawBenchConfig(select="comm-009,code-001,mm-001,file-001,xdom-013"))

    @pytest.fixture
    def provider(self, provider: SandboxProvider) -> SandboxProvider:
        return provider


async def test_set_up_that_ignores_its_argument_still_fills_the_workspace(provider: SandboxProvider) -> None:
    taskset = ClawBench(ClawBenchConfig(select="comm-009"))
    (task,) = taskset.tasks()
    async with (
        await provider.create(taskset.spec(task)) as sandbox,
        taskset.session(task, sandbox),
    ):
        data = taskset.directory(task) / "environment/task/environment/data"
        names = {entry.name for entry in await sandbox.list("/workspace")}
        assert {path.name for path in data.iterdir()} <= names
        assert (await sandbox.exec("find / -name setup.sh -path '*orchard*' 2>/dev/null")).text == ""


async def test_a_partly_right_answer_scores_0_with_the_share_of_its_checks(provider: SandboxProvider) -> None:
    taskset = ClawBench(ClawBenchConfig(select="file-001"))
    (task,) = taskset.tasks()
    wrong = Solution(steps=(SolutionStep(command="echo '| a |' > /workspace/output.md"),))
    found = await attempt(taskset, provider, task, wrong)
    assert found.score == 0.0
    assert "passed" in found.reason


async def test_a_workspace_that_configures_pytest_changes_nothing(provider: SandboxProvider) -> None:
    """conftest.py, pytest.ini and modules named like ours, left by an agent, are not read."""
    taskset = ClawBench(ClawBenchConfig(select="file-001"))
    (task,) = taskset.tasks()
    plant = (
        "printf '[pytest]\\naddopts = --collect-only\\n' > pytest.ini; "
        "echo 'import os; os._exit(0)' | tee conftest.py pytest.py json.py sitecustomize.py > yaml.py"
    )
    found = await attempt(taskset, provider, task, Solution(steps=(SolutionStep(command=plant),)))
    assert found.score == 0.0


FORGE = (
    "import os; os.makedirs('/logs/verifier', exist_ok=True); "
    "print('1', file=open('/logs/verifier/reward.txt', 'w'), flush=True)"
)
DAEMON = f"import time\nwhile True: exec({FORGE!r})"
FORGERIES = {
    "writes a reward": FORGE,
    "writes a reward and leaves": f"{FORGE}; os._exit(0)",
    "writes a reward when pytest is over": f"import atexit; atexit.register(lambda: exec({FORGE!r}))",
    "leaves a daemon that writes rewards": (
        f"import subprocess; subprocess.Popen(['python3', '-c', {DAEMON!r}], start_new_session=True)"
    ),
}


@pytest.mark.parametrize("module", FORGERIES.values(), ids=FORGERIES)
async def test_a_module_that_forges_a_reward_scores_0(provider: SandboxProvider, module: str) -> None:
    """The verifier imports stack.py into its own process."""
    taskset = ClawBench(ClawBenchConfig(select="code-005"))
    (task,) = taskset.tasks()
    write = f"cat > /workspace/stack.py <<'END'\n{module}\nEND\n"
    found = await attempt(taskset, provider, task, Solution(steps=(SolutionStep(command=write),)))
    assert (found.score, found.error) == (0.0, "")


async def test_a_module_that_kills_the_judge_gets_no_score(provider: SandboxProvider) -> None:
    taskset = ClawBench(ClawBenchConfig(select="code-005"))
    (task,) = taskset.tasks()
    kill = f"{FORGE}; os.kill(os.getppid(), 9); os.kill(os.getpid(), 9)"
    write = f"cat > /workspace/stack.py <<'END'\n{kill}\nEND\n"
    found = await attempt(taskset, provider, task, Solution(steps=(SolutionStep(command=write),)))
    assert (found.score, found.error) == (None, "VerifierFailed")


async def test_without_pytest_inside_there_is_no_score(provider: SandboxProvider) -> None:
    taskset = ClawBench(ClawBenchConfig(select="file-001", python="image"))
    (task,) = taskset.tasks()
    found = await attempt(taskset, provider, task)
    assert (found.score, found.error) == (None, "RewardMissing")


@pytest.fixture(
    params=[pytest.param(5, id="every fifth"), pytest.param(1, id="all", marks=pytest.mark.nightly)]
)
def many(request: pytest.FixtureRequest, all_222: ClawBench) -> ClawBench:
    """A part of the tasks over every domain, the two broken ones among them; or all."""
    names = {task.id for task in list(all_222.tasks())[:: request.param]}
    return ClawBench(ClawBenchConfig(select=",".join(sorted(names | BROKEN.keys()))))


@pytest.mark.slow
async def test_the_doctor_finds_all_sound_but_the_known_two(
    provider: SandboxProvider, many: ClawBench
) -> None:
    taskset = many
    unsound: dict[str, str] = {}
    async for each in examine(taskset, provider, concurrency=3):
        assert each.noop is not None
        assert each.noop.score == 0.0, each.task_id
        if each.verdict is not Verdict.OK:
            unsound[each.task_id] = each.reason
    assert unsound.keys() == BROKEN.keys()
    assert all(BROKEN[name] in reason for name, reason in unsound.items())


@pytest.mark.slow
async def test_steps_have_the_effect_of_the_whole_solution(
    provider: SandboxProvider, many: ClawBench
) -> None:
    """What lies in the workspace after the steps is what solve.sh itself leaves."""
    taskset = many
    listing = "find . -type f -exec sha256sum {} + | sort"
    different = []
    for task in taskset.tasks():
        solution = taskset.solution(task)
        assert solution is not None
        script = (taskset.directory(task) / "solution/solve.sh").read_text()
        seen = []
        for commands in ([step.command for step in solution.steps], [script]):
            async with (
                await provider.create(taskset.spec(task)) as sandbox,
                taskset.session(task, sandbox),
            ):
                for command in commands:
                    await sandbox.exec(command)
                seen.append((await sandbox.exec(listing)).text)
        if seen[0] != seen[1]:
            different.append(task.id)
    assert different == []
