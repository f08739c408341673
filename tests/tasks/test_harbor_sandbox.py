"""A Harbor task in a real sandbox: set-up inside, verified by its tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from orchard_core import (
    Diagnosis,
    HarborConfig,
    HarborTaskSet,
    SandboxProvider,
    TaskInvalid,
    Verdict,
    examine,
)
from orchard_core.testing import TaskSetSuite

CHECK = """#!/bin/sh
mkdir -p /logs/verifier
if [ "$(cat /workspace/answer.txt)" = 7 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
"""
SOLVE = "#!/bin/bash\nset -e\n# The answer is in the book.\necho 7 > answer.txt\n"

MakeTask = Callable[..., Path]


class TestHarbor(TaskSetSuite):
    @pytest.fixture
    def taskset(self, make_task: MakeTask) -> HarborTaskSet:
        for name in ("first", "second"):
            root = make_task(name, test=CHECK, **{"solution/solve.sh": SOLVE})
        return HarborTaskSet(HarborConfig(path=root.parent))

    @pytest.fixture
    def provider(self, provider: SandboxProvider) -> SandboxProvider:
        return provider


async def diagnose(provider: SandboxProvider, path: Path) -> Diagnosis:
    (found,) = [each async for each in examine(HarborTaskSet(HarborConfig(path=path)), provider)]
    return found


async def seen_inside(provider: SandboxProvider, path: Path, command: str) -> str:
    taskset = HarborTaskSet(HarborConfig(path=path))
    (task,) = taskset.tasks()
    async with (
        await provider.create(taskset.spec(task)) as sandbox,
        taskset.session(task, sandbox),
    ):
        return (await sandbox.exec(command)).text


async def test_files_of_the_environment_lie_in_the_workdir(
    make_task: MakeTask, provider: SandboxProvider
) -> None:
    root = make_task(**{"environment/names.txt": "ada\n", "environment/setup.sh": "true"})
    assert await seen_inside(provider, root, "ls; cat names.txt") == "names.txt\nada\n"


async def test_environment_files_has_precedence(make_task: MakeTask, provider: SandboxProvider) -> None:
    root = make_task(**{"environment/files/in.txt": "1", "environment/notes.md": "for the author"})
    assert await seen_inside(provider, root, "ls") == "in.txt\n"


async def test_the_set_up_script_runs_inside_and_is_gone_afterwards(
    make_task: MakeTask, provider: SandboxProvider
) -> None:
    setup = '#!/bin/sh\r\ncat "$ORCHARD_ENVIRONMENT/seed" > made\r\npwd >> made\r\nhostname >> made\r\n'
    root = make_task(**{"environment/setup.sh": setup, "environment/seed": "4\n"})
    seen = await seen_inside(provider, root, "cat made; hostname; ls /tmp")
    seed, place, name, here = seen.split("\n")[:4]
    assert (seed, place) == ("4", "/workspace")
    assert name == here
    assert "orchard" not in seen.split("\n", 4)[4]


async def test_neither_tests_nor_solution_are_inside_while_the_agent_works(
    make_task: MakeTask, provider: SandboxProvider
) -> None:
    root = make_task(test="#!/bin/sh\n# canary-tests\n", **{"solution/solve.sh": "# canary-solution\n"})
    seen = await seen_inside(
        provider, root, "ls / ; ls -a; grep -rl canary- /workspace /tmp /opt /home /srv /mnt /run /var"
    )
    assert "canary" not in seen
    assert not {"tests", "solution"} & set(seen.split())


async def test_a_failing_set_up_is_the_tasks_fault(make_task: MakeTask, provider: SandboxProvider) -> None:
    root = make_task(**{"environment/setup.sh": "echo no such thing >&2; exit 3"})
    with pytest.raises(TaskInvalid, match="exited with 3") as caught:
        await seen_inside(provider, root, "true")
    assert "no such thing" in caught.value.hint


async def test_a_set_up_that_hangs_ends_at_its_own_limit(
    make_task: MakeTask, provider: SandboxProvider
) -> None:
    toml = "[orchard]\nsetup_timeout_sec = 0.3\n"
    root = make_task(toml=toml, **{"environment/setup.sh": "sleep 60"})
    with pytest.raises(TaskInvalid, match=r"ran past 0\.3 s"):
        await seen_inside(provider, root, "true")


async def test_the_agents_environment_is_as_the_task_says(
    make_task: MakeTask, provider: SandboxProvider
) -> None:
    root = make_task(toml='[environment]\nworkdir = "/data"\nenv = { COLOUR = "red $(x)" }\n')
    assert await seen_inside(provider, root, 'pwd; echo "$COLOUR"') == "/data\nred $(x)\n"


async def test_scripts_with_windows_line_ends_run(make_task: MakeTask, provider: SandboxProvider) -> None:
    root = make_task(test=CHECK.replace("\n", "\r\n"), **{"solution/solve.sh": SOLVE.replace("\n", "\r\n")})
    assert (await diagnose(provider, root)).verdict is Verdict.OK


async def test_steps_of_the_orchard_table_are_the_solution(
    make_task: MakeTask, provider: SandboxProvider
) -> None:
    toml = '[[orchard.steps]]\nthought = "I know it."\ncommand = "echo 7 > answer.txt"\n'
    assert (await diagnose(provider, make_task(toml=toml, test=CHECK))).verdict is Verdict.OK


async def test_a_solution_that_needs_its_own_directory_gets_it(
    make_task: MakeTask, provider: SandboxProvider
) -> None:
    solve = '#!/bin/sh\ncp "$(dirname "$0")/key.txt" answer.txt\n'
    files = {"solution/solve.sh": solve, "solution/key.txt": "7\n"}
    assert (await diagnose(provider, make_task(test=CHECK, **files))).verdict is Verdict.OK


async def test_a_solution_may_be_a_python_program(make_task: MakeTask, provider: SandboxProvider) -> None:
    solve = "#!/usr/bin/env python3\nopen('answer.txt', 'w').write('7')\n"
    root = make_task(test=CHECK, **{"solution/solve.sh": solve})
    assert (await diagnose(provider, root)).verdict is Verdict.OK


async def test_the_solutions_environment_is_set(make_task: MakeTask, provider: SandboxProvider) -> None:
    toml = '[solution]\nenv = { ANSWER = "7", QUOTE = "it\'s" }\n'
    root = make_task(toml=toml, test=CHECK, **{"solution/solve.sh": 'echo "$ANSWER" > answer.txt\n'})
    assert (await diagnose(provider, root)).verdict is Verdict.OK


async def test_the_tests_environment_is_for_the_tests_alone(
    make_task: MakeTask, provider: SandboxProvider
) -> None:
    test = '#!/bin/sh\n[ "$RIGHT" = "$(cat answer.txt)" ] && echo 1 > /logs/verifier/reward.txt || '
    test += "echo 0 > /logs/verifier/reward.txt\n"
    toml = '[verifier]\nenv = { RIGHT = "7" }\n'
    solve = 'echo "7$RIGHT" > answer.txt\n'
    found = await diagnose(provider, make_task(toml=toml, test=test, **{"solution/solve.sh": solve}))
    assert found.verdict is Verdict.OK


async def test_a_task_may_be_verified_in_the_agents_own_sandbox(
    make_task: MakeTask, provider: SandboxProvider
) -> None:
    toml = '[verifier]\nenvironment_mode = "shared"\n'
    test = CHECK.replace("/workspace/answer.txt", "/srv/answer.txt")
    root = make_task(toml=toml, test=test, **{"solution/solve.sh": "echo 7 > /srv/answer.txt\n"})
    assert (await diagnose(provider, root)).verdict is Verdict.OK
