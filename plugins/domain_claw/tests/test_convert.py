"""What becomes of a claw-bench task."""

from __future__ import annotations

import re
from pathlib import Path

from orchard_domain_claw.config import ClawBenchConfig
from orchard_domain_claw.convert import solution
from orchard_domain_claw.python import PLACE, mounts
from orchard_domain_claw.source import ClawTask
from orchard_domain_claw.taskset import ClawBench

from orchard_core import NetworkMode, VerifyIn


def test_every_task_is_read_without_a_remark(claw_tasks: list[ClawTask], all_222: ClawBench) -> None:
    taskset = all_222
    tasks = list(taskset.tasks())
    assert [task.id for task in tasks] == [task.toml.id for task in claw_tasks]
    assert taskset.problems() == ()
    assert {task.verify_in for task in tasks} == {VerifyIn.FRESH}
    assert {taskset.spec(task).network.mode for task in tasks} == {NetworkMode.NONE}
    assert all(task.agent_timeout_s >= 120 for task in tasks)


def test_instructions_name_the_workspace_in_full(all_222: ClawBench) -> None:
    for task in all_222.tasks():
        assert not re.search(r"(?<![\w./-])workspace/", task.instruction), task.id
        assert "//workspace" not in task.instruction


def test_solutions_know_the_workspace(claw_tasks: list[ClawTask]) -> None:
    for task in claw_tasks:
        script = solution(task.root)
        assert "WORKSPACE=/workspace\n" in script, task.toml.id
        assert "TASK_DIR" not in script


def test_most_solutions_are_several_commands(all_222: ClawBench) -> None:
    taskset = all_222
    steps = []
    for task in taskset.tasks():
        found = taskset.solution(task)
        assert found is not None
        steps.append(len(found.steps))
    assert sum(count > 1 for count in steps) > 150


def test_only_the_packages_that_are_needed_are_shown_inside(tmp_path: Path) -> None:
    *shown, commands = mounts(tmp_path)
    assert [path.name for path in Path(commands.source).iterdir()] == ["python"]
    assert all(mount.target.startswith(f"{PLACE}/") for mount in shown)
    assert {Path(mount.source).name for mount in shown} == {Path(mount.target).name for mount in shown}
    assert not any(mount.source.rstrip("/").endswith("site-packages") for mount in shown)


def test_an_image_may_bring_its_own_python() -> None:
    config = ClawBenchConfig(select="eml-001", python="image", image="oci:python:3.12")
    taskset = ClawBench(config)
    (task,) = taskset.tasks()
    spec = taskset.spec(task)
    assert str(spec.image) == "oci:python:3.12"
    assert (spec.mounts, spec.files, spec.env) == ((), (), {})
    assert taskset.name == "claw-bench:eml-001"
