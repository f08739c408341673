"""Reading task.toml: every field that matters arrives where it should."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from orchard_core import HarborConfig, HarborTaskSet, NetworkMode, Task, TaskSetNotFound, VerifyIn

FULL = """
schema_version = "1.1"
artifacts = ["/app/out", { source = "/app/log.txt" }]
[task]
name = "org/full"
[metadata]
difficulty = "hard"
category = "games"
tags = ["x", "y"]
[agent]
timeout_sec = 90.0
user = "worker"
[verifier]
timeout_sec = 45
user = 1001
environment_mode = "separate"
env = { MODE = "strict", KEY = "${MISSING:-none}" }
[solution]
env = { HINT = "it's" }
[environment]
build_timeout_sec = 600.0
docker_image = "registry.example/app:1"
cpus = 2
memory_mb = 2048
storage_mb = 10240
network_mode = "allowlist"
allowed_hosts = ["example.net", "*.example.org"]
env = { LANG = "C.UTF-8" }
workdir = "/app"
"""

MakeTask = Callable[..., Path]


def only(path: Path, pass_env: tuple[str, ...] = ()) -> tuple[HarborTaskSet, Task]:
    taskset = HarborTaskSet(HarborConfig(path=path, pass_env=pass_env))
    (task,) = taskset.tasks()
    return taskset, task


def test_every_field_of_task_toml_arrives(make_task: MakeTask) -> None:
    taskset, task = only(make_task(toml=FULL))
    spec = taskset.spec(task)
    assert (task.agent_timeout_s, task.verifier_timeout_s) == (90.0, 45.0)
    assert (task.verify_in, task.artifacts) == (VerifyIn.FRESH, ("/app/out", "/app/log.txt"))
    assert (task.workdir, spec.workdir) == ("/app", "/app")
    assert task.tags == ("hard", "games", "x", "y")
    assert str(spec.image) == "oci:registry.example/app:1"
    assert (spec.cpu, spec.memory_mb, spec.disk_mb, spec.user) == (2, 2048, 10240, "worker")
    assert spec.network.mode is NetworkMode.ALLOW_LIST
    assert spec.network.allow == ("example.net", "*.example.org")
    assert spec.env == {"LANG": "C.UTF-8"}
    assert taskset.problems() == ()


@pytest.mark.parametrize(("written", "mib"), [("2G", 2048), ("512M", 512), ("1.5GiB", 1536), ("512mb", 512)])
def test_retired_sizes_are_read(make_task: MakeTask, written: str, mib: int) -> None:
    taskset, task = only(make_task(toml=f'[environment]\nmemory = "{written}"\nstorage = "10G"\n'))
    assert taskset.spec(task).memory_mb == mib
    assert taskset.spec(task).disk_mb == 10240


@pytest.mark.parametrize(
    ("environment", "mode"),
    [
        ("allow_internet = true", NetworkMode.OPEN),
        ("allow_internet = false", NetworkMode.NONE),
        ('network_mode = "public"', NetworkMode.OPEN),
        ('network_mode = "no-network"\nallow_internet = true', NetworkMode.NONE),
        ("", NetworkMode.NONE),
        ('docker_image = "x:1"', NetworkMode.OPEN),
    ],
)
def test_the_network_is_what_the_task_says(make_task: MakeTask, environment: str, mode: NetworkMode) -> None:
    taskset, task = only(make_task(toml=f"[environment]\n{environment}\n"))
    assert taskset.spec(task).network.mode is mode


def test_a_dockerfile_is_built_and_gives_the_workdir(make_task: MakeTask) -> None:
    root = make_task(**{"environment/Dockerfile": "FROM x\nWORKDIR /first\nRUN y\nworkdir '/srv/app'\n"})
    taskset, task = only(root)
    assert str(taskset.spec(task).image) == f"build:{root / 'environment'}"
    assert task.workdir == "/srv/app"


def test_a_ready_image_comes_before_its_dockerfile(make_task: MakeTask) -> None:
    toml = '[environment]\ndocker_image = "x:1"\n'
    taskset, task = only(make_task(toml=toml, **{"environment/Dockerfile": "FROM y\nWORKDIR /app\n"}))
    assert str(taskset.spec(task).image) == "oci:x:1"
    assert task.workdir == "/app"


@pytest.mark.parametrize(
    ("toml", "where", "artifacts"),
    [
        ("", VerifyIn.FRESH, ("/workspace",)),
        ('[environment]\nworkdir = "/data/"\n', VerifyIn.FRESH, ("/data",)),
        ('[environment]\ndocker_image = "x:1"\n', VerifyIn.SAME_SANDBOX, ()),
        ('artifacts = ["/a"]\n[environment]\ndocker_image = "x:1"\n', VerifyIn.FRESH, ("/a",)),
        ('[verifier]\nenvironment_mode = "shared"\n', VerifyIn.SAME_SANDBOX, ()),
        (
            '[environment]\ndocker_image = "x:1"\n[orchard]\nverify = "fresh"\n',
            VerifyIn.FRESH,
            ("/workspace",),
        ),
        ('[orchard]\nverify = "same_sandbox"\n', VerifyIn.SAME_SANDBOX, ()),
        ('artifacts = ["/a"]\n[orchard]\nartifacts = ["/b", "/a"]\n', VerifyIn.FRESH, ("/a", "/b")),
    ],
)
def test_where_the_tests_run_follows_from_what_they_need(
    make_task: MakeTask, toml: str, where: VerifyIn, artifacts: tuple[str, ...]
) -> None:
    _, task = only(make_task(toml=toml))
    assert (task.verify_in, task.artifacts) == (where, artifacts)


def test_unknown_keys_are_told_by_their_full_name(make_task: MakeTask) -> None:
    toml = 'colour = "red"\n[agent]\nspeed = 3\n[environment]\nshape = "round"\n'
    taskset, _ = only(make_task(toml=toml))
    told = " ".join(taskset.problems())
    assert all(f"unknown key {key} " in told for key in ("colour", "agent.speed", "environment.shape"))


def test_a_newer_schema_is_told(make_task: MakeTask) -> None:
    taskset, _ = only(make_task(toml='schema_version = "2.0"\n'))
    assert "schema 2.0 is newer" in taskset.problems()[0]


def test_a_task_reads_only_variables_that_the_user_passes(
    make_task: MakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPEN_DOOR", "yes")
    monkeypatch.setenv("SECRET_KEY", "hush")
    toml = '[environment]\nenv = { A = "${OPEN_DOOR}", B = "${SECRET_KEY}", C = "${SECRET_KEY:-free}" }\n'
    taskset, task = only(make_task(toml=toml), pass_env=("OPEN_DOOR",))
    assert taskset.spec(task).env == {"A": "yes", "B": "", "C": "free"}
    assert "SECRET_KEY" in " ".join(taskset.problems())


def test_the_environment_of_a_solution_is_filled_as_that_of_everything_else(
    make_task: MakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPEN_DOOR", "a 'b'")
    monkeypatch.setenv("SECRET_KEY", "hush")
    toml = '[solution]\nenv = { A = "${OPEN_DOOR}", B = "${SECRET_KEY}" }\n'
    files = {"solution/solve.sh": "#!/bin/sh\ntrue\n"}
    taskset, task = only(make_task(toml=toml, **files), pass_env=("OPEN_DOOR",))
    solution = taskset.solution(task)
    assert solution is not None
    assert solution.steps[0].command.startswith("""export A='a '"'"'b'"'"''\nexport B=''\n""")
    (problem,) = taskset.problems()
    assert "solution.env asks for ${SECRET_KEY}" in problem


def test_the_digest_follows_content_names_and_the_executable_bit(make_task: MakeTask) -> None:
    root = make_task(**{"environment/data.txt": "1"})
    first = only(root)[1].digest
    assert only(root)[1].digest == first
    (root / "environment" / "data.txt").write_text("2")
    second = only(root)[1].digest
    (root / "tests" / "test.sh").chmod(0o755)
    third = only(root)[1].digest
    (root / "environment" / "data.txt").rename(root / "environment" / "date.txt")
    assert len({first, second, third, only(root)[1].digest}) == 4


def test_one_task_directory_may_be_named_itself(make_task: MakeTask) -> None:
    make_task("first")
    assert [task.id for task in HarborTaskSet(HarborConfig(path=make_task("second"))).tasks()] == ["second"]


def test_tasks_come_in_the_order_of_their_names(make_task: MakeTask) -> None:
    for name in ("b", "a", "c"):
        root = make_task(name)
    assert [task.id for task in HarborTaskSet(HarborConfig(path=root.parent)).tasks()] == ["a", "b", "c"]


@pytest.mark.parametrize("missing", [True, False])
def test_a_path_without_tasks_is_an_error_that_says_so(tmp_path: Path, missing: bool) -> None:
    path = tmp_path / "nowhere" if missing else tmp_path
    with pytest.raises(TaskSetNotFound, match="directory"):
        list(HarborTaskSet(HarborConfig(path=path)).tasks())
