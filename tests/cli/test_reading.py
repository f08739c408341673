"""Reading what was run: show, runs, tasks, doctor."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchard_core import open_run
from orchard_core.cli.exits import Exit

from .conftest import Orchard, command

HOSTILE = (
    '{"text": "look \\u001b]0;owned\\u0007 here\\u001b[2J", "calls": [{"name": "bash", "arguments": '
    '{"command": "printf \'\\\\033[31mred\\\\033[0m\\\\n\'; seq 1 200"}}]}\n'
    '{"text": "done", "calls": [{"name": "submit", "arguments": {}}]}\n'
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a run of two tasks by a model that tries to steer the terminal."""
    where = tmp_path_factory.mktemp("reading")
    (where / "replies.jsonl").write_text(HOSTILE)
    done = command(where)("run", "workbench:2", "--model", "scripted:replies.jsonl", "--out", "runs/r")
    assert done.returncode == Exit.OK, done.stderr
    return where


def test_a_run_is_read_turn_by_turn_and_cannot_steer_the_terminal(place: Path) -> None:
    orchard = command(place)
    (first, second) = open_run(place / "runs" / "r")
    listed = orchard("show", "runs/r")
    assert first.id[:10] in listed.stdout
    assert f"{second.task.id}#0" in listed.stdout

    for name in (first.id[:10], first.task.id, f"{first.task.id}#0", first.id):
        assert orchard("show", "runs/r", name).stdout.startswith(f"{first.task.id}#0  {first.id}"), name

    told = orchard("show", "runs/r", first.task.id).stdout
    assert "\x1b" not in told
    assert "owned" not in told
    assert "look  here" in told
    assert "→ bash: printf" in told
    assert "red\n1\n2\n" in told
    assert "lines, see --full" in told
    assert "── stopped: submitted" in told
    assert told.index("[user]") < told.index("── call 0") < told.index("── call 1") < told.index("── score 0")
    assert "\n100\n" in orchard("show", "runs/r", first.task.id, "--full").stdout

    whole = json.loads(orchard("show", "runs/r", first.id, "--json").stdout)
    assert whole["id"] == first.id
    assert [line["task"] for line in json.loads(orchard("show", "runs/r", "--failed", "--json").stdout)]


def test_a_name_that_means_none_or_several_says_so(orchard: Orchard, place: Path) -> None:
    run = place / "runs" / "r"
    none = orchard("show", str(run), "nothing-like-it")
    assert (none.returncode, "has no finished rollout 'nothing-like-it'" in none.stderr) == (Exit.USAGE, True)
    wrong = orchard("show", str(run), "--outcome", "lucky")
    assert (wrong.returncode, "completed" in wrong.stderr) == (Exit.USAGE, True)


def test_runs_are_listed_newest_first(place: Path) -> None:
    orchard = command(place)
    done = orchard("runs", "list")
    assert done.returncode == Exit.OK
    assert "runs/r" in done.stdout
    (row,) = json.loads(orchard("runs", "list", "--json").stdout)
    assert (row["run"], row["planned"], row["finished"], row["mean_score"]) == ("runs/r", 2, 2, 0.0)


def test_no_runs_is_an_empty_list(orchard: Orchard) -> None:
    assert json.loads(orchard("runs", "list", "--json").stdout) == []


def test_reap_says_what_it_removed(orchard: Orchard, tmp_path: Path) -> None:
    done = orchard("runs", "reap", "--state-dir", str(tmp_path / "state"), "--json")
    assert json.loads(done.stdout) == {"drivers": 0, "sandboxes": 0, "snapshots": 0, "cgroups": 0, "left": []}


def test_tasks_are_listed_and_shown(orchard: Orchard) -> None:
    listed = json.loads(orchard("tasks", "list", "workbench:8", "--json").stdout)
    assert len(listed) == 8
    name = listed[0]["id"]
    matched = orchard("tasks", "list", "workbench:8", "--task", f"{name[:4]}*")
    assert name in matched.stdout
    told = orchard("tasks", "show", "workbench:8", name, "--solution").stdout
    assert listed[0]["instruction"].splitlines()[0] in told
    assert "solution" in told
    shown = json.loads(orchard("tasks", "show", "workbench:8", name, "--solution", "--json").stdout)
    assert shown["task"]["id"] == name
    assert shown["solution"]["steps"]


BAD_TEST = "#!/bin/sh\nmkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt\n"


def test_the_doctor_names_a_task_that_doing_nothing_solves(orchard: Orchard, tmp_path: Path) -> None:
    task = tmp_path / "tasks" / "too-easy"
    for name, text in {
        "instruction.md": "Do something.", "task.toml": 'artifacts = ["/workspace"]\n',
        "solution/solve.sh": "#!/bin/sh\ntouch done\n", "tests/test.sh": BAD_TEST, "environment/a.txt": "a",
    }.items():  # fmt: skip
        (task / name).parent.mkdir(parents=True, exist_ok=True)
        (task / name).write_text(text)
    done = orchard("doctor", "harbor:tasks", "--quarantine", "q.txt")
    assert done.returncode == Exit.UNSOUND, done.stderr
    assert "noop_passed" in done.stdout
    assert "too-easy: noop_passed" in done.stderr
    assert (tmp_path / "q.txt").read_text().splitlines()[1].startswith("too-easy\tnoop_passed")
    told = json.loads(orchard("doctor", "harbor:tasks", "--json").stdout)
    assert (told["planned"], told["examined"], told["verdicts"]) == (1, 1, {"noop_passed": 1})


def test_the_doctor_is_content_with_sound_tasks(orchard: Orchard) -> None:
    done = orchard("doctor", "workbench:2")
    assert done.returncode == Exit.OK, done.stdout + done.stderr
    assert "2 of 2 tasks examined" in done.stdout
