"""Task directories that somebody made badly, or to do harm: listed, never run, never silent."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from orchard_core import HarborConfig, HarborTaskSet, Task

MakeTask = Callable[..., Path]


def link_out(root: Path) -> None:
    (root / "tests" / "shadow").symlink_to("/etc/shadow")


def link_up(root: Path) -> None:
    (root / "environment").mkdir()
    (root / "environment" / "up").symlink_to("../../..")


def linked_directory(root: Path) -> None:
    (root / "environment").symlink_to("/etc")


def pipe(root: Path) -> None:
    os.mkfifo(root / "tests" / "pipe")


def pipe_as_instruction(root: Path) -> None:
    (root / "instruction.md").unlink()
    os.mkfifo(root / "instruction.md")


def huge(root: Path) -> None:
    with (root / "tests" / "huge.bin").open("wb") as file:
        file.truncate(2 << 20)


def long_instruction(root: Path) -> None:
    (root / "instruction.md").write_bytes(b"a" * (5 << 20))


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        (link_out, "leaves the task directory"),
        (link_up, "leaves the task directory"),
        (linked_directory, "leaves the task directory"),
        (pipe, "device, pipe or socket"),
        (pipe_as_instruction, "no instruction.md"),
        (huge, "more than 1 MiB"),
        (long_instruction, "more than 1 MiB"),
    ],
)
def test_a_hostile_directory_is_left_out_with_its_reason(
    make_task: MakeTask, harm: Callable[[Path], None], reason: str
) -> None:
    good = make_task("good")
    harm(make_task("bad"))
    told = left_out(good.parent, max_mb=1)
    assert "bad: left out" in told
    assert reason in told


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"task.toml": "not = [toml"}, "not TOML"),
        ({"task.toml": "[agent]\ntimeout_sec = -1\n"}, "agent.timeout_sec"),
        ({"task.toml": '[environment]\nmemory = "lots"\n'}, "not a size"),
        ({"task.toml": f'[environment]\nmemory = "{"9" * 400}T"\n'}, "not a size"),
        ({"task.toml": f"[environment]\nmemory_mb = {2**63}\n"}, "environment.memory_mb"),
        ({"task.toml": f'[environment]\nstorage = "{2**63}"\n[agent]\ntimeout_sec = inf\n'}, "timeout_sec"),
        ({"task.toml": "[environment]\ncpus = inf\n"}, "environment.cpus"),
        ({"task.toml": "[verifier]\ntimeout_sec = 1e300\n"}, "verifier.timeout_sec"),
        ({"task.toml": "[orchard]\nreward_range = [nan, nan]\n"}, "reward_range"),
        ({"task.toml": "[orchard]\nreward_range = [0, inf]\n"}, "reward_range"),
        ({"task.toml": "[orchard]\nreward_range = [1, 0]\n"}, "reward_range"),
        ({"task.toml": f"number = {'9' * 5000}\n"}, "not TOML"),
        ({"task.toml": f"deep = {'[' * 5000}{']' * 5000}\n"}, "not TOML"),
        ({"task.toml": '[orchard]\nfiles = "a\\u0000b"\n'}, "outside the task directory"),
        ({"task.toml": '[environment]\nworkdir = "/a\\u0000b"\n'}, "NUL"),
        ({"task.toml": 'artifacts = ["/a\\u0000b"]\n'}, "absolute path of its own"),
        ({"task.toml": '[environment.env]\n"A=B" = "x"\n'}, "environment.env"),
        ({"task.toml": '[verifier.env]\n"" = "x"\n'}, "verifier.env"),
        ({"task.toml": '[environment.env]\nA = "\\u0000"\n'}, "environment.env"),
        ({"task.toml": '[environment]\nnetwork_mode = "allowlist"\n'}, "without allowed_hosts"),
        ({"task.toml": '[environment]\nworkdir = "here"\n'}, "not absolute"),
        ({"task.toml": '[environment]\nworkdir = "/tests"\n'}, "belongs to the tests"),
        ({"task.toml": 'artifacts = ["/tests"]\n'}, "absolute path of its own"),
        ({"task.toml": 'artifacts = ["/"]\n'}, "absolute path of its own"),
        ({"task.toml": 'artifacts = ["out.txt"]\n'}, "absolute path of its own"),
        ({"task.toml": '[orchard]\nfiles = "../good"\n'}, "outside the task directory"),
        ({"task.toml": '[orchard]\nsetup = "/etc/passwd"\n'}, "outside the task directory"),
        ({"task.toml": "[environment]\ngpus = 1\n"}, "needs a GPU"),
        ({"task.toml": '[[steps]]\nname = "one"\n'}, "several steps"),
        ({"environment/docker-compose.yaml": "services: {}"}, "several containers"),
        ({"instruction.md": " \n"}, "is empty"),
        ({"instruction.md": None}, "no instruction.md"),
        ({"tests/test.sh": None}, "no tests/test.sh"),
        ({"task.toml": None}, "no task.toml"),
    ],
)
def test_a_broken_task_is_left_out_with_its_reason(
    make_task: MakeTask, files: Mapping[str, str | None], reason: str
) -> None:
    good = make_task("good")
    make_task("bad", **files)
    assert reason in left_out(good.parent)


@pytest.mark.parametrize("name", ["with blank", "-dash", "tab\tname", "é", "semi;colon"])
def test_a_name_that_cannot_be_an_id_is_left_out(make_task: MakeTask, name: str) -> None:
    good = make_task("good")
    make_task(name)
    told = left_out(good.parent)
    assert "cannot be a task's name" in told
    assert told.isprintable()


def test_links_in_a_circle_cost_no_other_task(make_task: MakeTask) -> None:
    root = make_task("circle")
    (root / "tests" / "circle").symlink_to("circle")
    good = make_task("good")
    assert "good" in {task.id for task in HarborTaskSet(HarborConfig(path=good.parent)).tasks()}


def test_links_within_the_directory_are_fine(make_task: MakeTask) -> None:
    root = make_task(**{"environment/data/one.txt": "1"})
    (root / "environment" / "data" / "two.txt").symlink_to("one.txt")
    assert list(HarborTaskSet(HarborConfig(path=root)).tasks())


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\xef\xbb\xbfHello\n", "Hello\n"),
        ("Grüße\n".encode("utf-16"), "Grüße\n"),
        (b"caf\xe9\n", "caf\ufffd\n"),
        (b"one\r\ntwo\r\n", "one\r\ntwo\r\n"),
    ],
)
def test_odd_encodings_are_read_and_told(make_task: MakeTask, data: bytes, text: str) -> None:
    taskset = HarborTaskSet(HarborConfig(path=make_task(instruction=data)))
    (task,) = taskset.tasks()
    assert task.instruction == text
    assert bool(taskset.problems()) == (data[:1] in {b"\xff", b"\xfe", b"c"})


@pytest.mark.parametrize("script", ["echo " + "$(" * 50_000, 'echo "$', "echo \\", "cat <<'"])
def test_a_hostile_solution_is_played_whole(make_task: MakeTask, script: str) -> None:
    taskset = HarborTaskSet(HarborConfig(path=make_task(**{"solution/solve.sh": script})))
    (task,) = taskset.tasks()
    solution = taskset.solution(task)
    assert solution is not None
    assert [step.command for step in solution.steps] == [script]


def left_out(parent: Path, max_mb: int = 1024) -> str:
    taskset = HarborTaskSet(HarborConfig(path=parent, max_mb=max_mb))
    found: list[Task] = list(taskset.tasks())
    assert [task.id for task in found] == ["good"]
    (line,) = taskset.problems()
    return line
