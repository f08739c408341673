"""Runs from the command line: real tasks, real sandboxes, scripted models."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
import yaml

from orchard_core import open_run
from orchard_core.cli.exits import Exit
from orchard_core.tasks.workbench.generate import write_workbench

from .conftest import ARGV, Orchard, environment

SLEEPY = '{"text": "", "calls": [{"name": "bash", "arguments": {"command": "sleep 600"}}]}\n'
SUBMIT = '{"text": "done", "calls": [{"name": "submit", "arguments": {}}]}\n'


def test_a_run_is_scored_stored_and_summed_up(orchard: Orchard, tmp_path: Path) -> None:
    done = orchard("run", "workbench:3", "--model", "oracle", "--out", "r")
    assert done.returncode == Exit.OK, done.stderr
    assert "rollouts   3 planned, 3 finished, 3 scored" in done.stdout
    assert "reward     1.000" in done.stdout
    assert "next       orchard report r" in done.stdout
    assert "done 3/3" in done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    assert [rollout.score for rollout in open_run(tmp_path / "r")] == [1.0, 1.0, 1.0]


def test_json_is_all_that_goes_to_stdout(orchard: Orchard) -> None:
    done = orchard("run", "workbench:2", "--model", "oracle", "--out", "r", "--json")
    told = json.loads(done.stdout)
    assert (told["planned"], told["scored"], told["mean_score"], told["outcomes"]) == (
        2,
        2,
        1.0,
        {"completed": 2},
    )


def test_a_run_directory_is_not_written_twice_without_resume(orchard: Orchard) -> None:
    assert orchard("run", "workbench:1", "--model", "oracle", "--out", "r").returncode == Exit.OK
    again = orchard("run", "workbench:1", "--model", "oracle", "--out", "r")
    assert again.returncode == Exit.USAGE
    assert "--resume" in again.stderr


def test_without_out_each_run_gets_a_directory_that_says_what_it_is(orchard: Orchard, tmp_path: Path) -> None:
    orchard("run", "workbench:1", "--model", "oracle")
    orchard("run", "workbench:1", "--model", "oracle")
    names = [path.name for path in (tmp_path / "runs").iterdir()]
    assert len(names) == 2
    assert all(name.endswith("-workbench-1-react-oracle") or "oracle" in name for name in names)


def test_a_recipe_is_run_and_flags_go_over_it(orchard: Orchard, tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text(
        "taskset: workbench:8\nmodel: oracle\nlimit: 4\nlimits: {turns: 9}\nout: a\n"
    )
    done = orchard(
        "run", "r.yaml", "--limit", "2", "--out", "b", "--max-tokens", "90000", "--max-calls", "30", "--json"
    )
    assert done.returncode == Exit.OK, done.stderr
    assert json.loads(done.stdout)["planned"] == 2
    assert not (tmp_path / "a").exists()
    (first, *_) = open_run(tmp_path / "b")
    assert (first.limits.turns, first.limits.tokens, first.limits.calls) == (9, 90000, 30)


def test_print_config_gives_a_recipe_that_is_the_same_run(orchard: Orchard, tmp_path: Path) -> None:
    flags = [
        "run",
        "workbench:8",
        "--model",
        "oracle",
        "--attempts",
        "3",
        "--task",
        "csv-*",
        "--max-cost",
        "1.5",
    ]
    first = orchard(*flags, "--print-config")
    assert first.returncode == Exit.OK, first.stderr
    assert yaml.safe_load(first.stdout)["limits"]["cost_usd"] == 1.5
    (tmp_path / "r.yaml").write_text(first.stdout)
    assert orchard("run", "r.yaml", "--print-config").stdout == first.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.yaml"], "nothing was run"


def test_dry_run_loads_everything_and_runs_nothing(orchard: Orchard, tmp_path: Path) -> None:
    done = orchard("run", "workbench:8", "--model", "oracle", "--attempts", "2", "--limit", "3", "--dry-run")
    assert done.returncode == Exit.OK, done.stderr
    assert "rollouts   6, 2 at each task" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_options_reach_their_part_and_are_checked_by_it(orchard: Orchard) -> None:
    done = orchard("run", "workbench:1", "--model", "oracle", "--model-option", "volume=11", "--dry-run")
    assert done.returncode == Exit.USAGE
    assert "volume" in done.stderr
    assert "thoughts" in done.stderr, "the hint names the options there are"


def test_a_key_on_the_command_line_is_refused_and_not_echoed(orchard: Orchard) -> None:
    done = orchard("run", "workbench:1", "--model", "openai:x", "--model-option", "api_key=sk-verysecret")
    assert done.returncode == Exit.USAGE
    assert "environment" in done.stderr
    assert "sk-verysecret" not in done.stdout + done.stderr


class Refusing(BaseHTTPRequestHandler):
    """A model server that refuses every request, with words that want to steer the terminal."""

    def do_POST(self) -> None:
        body = b'{"error": {"message": "no \\u001b[31msuch model"}}'
        self.send_response(404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Keep the test's output clean."""


@pytest.fixture
def refusing() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()


def test_a_rollout_without_a_score_makes_the_exit_code_say_so(
    orchard: Orchard, refusing: str, tmp_path: Path
) -> None:
    (tmp_path / "r.yaml").write_text("taskset: workbench:1\nmodel: openai:x\nout: r\n")
    done = orchard("run", "r.yaml", "--base-url", refusing)
    assert done.returncode == Exit.UNSOUND, done.stderr
    assert "1 finished, 0 scored" in done.stdout
    assert "reward     none" in done.stdout
    assert "model_failed 1" in done.stdout
    assert "failed     ModelRejected 1: http://127.0.0.1" in done.stdout
    assert "such model" in done.stdout
    assert "\x1b" not in done.stdout
    listed = orchard("show", "r", "--failed").stdout.splitlines()
    assert listed[0].split()[-1] == "ERROR"
    assert listed[1].split()[-1] == "ModelRejected"
    assert json.loads(orchard("runs", "list", ".", "--json").stdout)[0]["model"] == "openai:x"
    assert "react with openai:x" in orchard("report", "r").stdout
    told = orchard("show", "r", orchard("show", "r", "--json").stdout.split('"id": "')[1][:12]).stdout
    assert "score none, model_failed (model)" in told
    assert "such model" in told
    assert "\x1b" not in told


def test_a_model_that_is_not_there_ends_a_run_of_many_tasks_after_five(
    orchard: Orchard, refusing: str, tmp_path: Path
) -> None:
    done = orchard("run", "workbench:20", "--model", "openai:x", "--base-url", refusing, "--out", "r",
                   "--concurrency", "1")  # fmt: skip
    assert done.returncode == Exit.FAILED
    assert "error: the model server refused 5 rollouts in a row alike" in done.stderr
    assert "15 more were not run" in done.stderr
    assert f"then orchard run --resume --out {tmp_path / 'r'}" in done.stderr
    assert len(json.loads(orchard("show", "r", "--json").stdout)) == 5


def started(tmp_path: Path, *args: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*ARGV, "run", *args],
        cwd=tmp_path,
        env=environment(),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def wait_for(path: Path, text: str) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if path.exists() and text in path.read_text():
            return
        time.sleep(0.05)
    raise AssertionError(f"{path} never held {text!r}")


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, Exit.INTERRUPTED), (signal.SIGTERM, Exit.TERMINATED), (signal.SIGHUP, Exit.HUNG_UP)],
)
def test_one_signal_stops_in_order_and_resume_runs_exactly_what_is_missing(
    tmp_path: Path, orchard: Orchard, number: signal.Signals, code: Exit
) -> None:
    (tmp_path / "replies.jsonl").write_text(SLEEPY)
    process = started(
        tmp_path, "workbench:3", "--model", "scripted:replies.jsonl", "--concurrency", "2", "--out", "r"
    )
    wait_for(tmp_path / "r" / "journal.jsonl", '"started"')
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == code, stderr
    assert "what is finished is kept" in stderr
    assert "go on with: orchard run --resume --out r" in stderr
    assert "3 planned, 0 finished" in stdout
    assert "Traceback" not in stderr
    (tmp_path / "replies.jsonl").write_text(SUBMIT)
    resumed = orchard("run", "--resume", "--out", "r", "--json")
    told = json.loads(resumed.stdout)
    assert (told["planned"], told["finished"], told["scored"]) == (3, 3, 3)


def test_a_second_signal_ends_it_at_once_and_the_run_can_still_be_resumed(
    tmp_path: Path, orchard: Orchard
) -> None:
    (tmp_path / "replies.jsonl").write_text(SLEEPY)
    process = started(tmp_path, "workbench:2", "--model", "scripted:replies.jsonl", "--out", "r")
    wait_for(tmp_path / "r" / "journal.jsonl", '"started"')
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == Exit.INTERRUPTED
    (tmp_path / "replies.jsonl").write_text(SUBMIT)
    assert json.loads(orchard("run", "--resume", "--out", "r", "--json").stdout)["scored"] == 2


def test_a_resumed_run_takes_everything_from_the_run_itself(tmp_path: Path, orchard: Orchard) -> None:
    first = orchard(
        "run", "workbench:8", "--task", "csv-*", "--task", "json-*", "--model", "noisy-oracle", "--seed", "7",
        "--model-option", "rate=0.0", "--max-turns", "30", "--out", "r",
    )  # fmt: skip
    assert first.returncode == Exit.OK, first.stderr
    again = orchard("run", "--resume", "--out", "r", "--attempts", "2", "--json")
    assert again.returncode == Exit.OK, again.stderr
    told = json.loads(again.stdout)
    tasks = len({rollout.task.id for rollout in open_run(tmp_path / "r")})
    assert told["planned"] == told["scored"] == 2 * tasks
    assert {rollout.limits.turns for rollout in open_run(tmp_path / "r")} == {30}


def test_what_a_task_set_leaves_out_is_said_after_the_run_and_in_the_report(
    orchard: Orchard, tmp_path: Path
) -> None:
    write_workbench(tmp_path / "tasks", count=1, seed=0, families=())
    (tmp_path / "tasks" / "broken").mkdir()
    (tmp_path / "tasks" / "broken" / "task.toml").write_text("x = [")
    done = orchard("run", "harbor:tasks", "--model", "oracle", "--out", "r")
    assert done.returncode == Exit.OK, done.stderr
    assert "left out   broken: " in done.stdout
    assert "## Left out or ignored by the task set\n\n- broken: " in orchard("report", "r").stdout


def test_a_filter_that_no_task_matches_is_a_mistake_of_the_command(orchard: Orchard) -> None:
    done = orchard("run", "workbench:2", "--model", "oracle", "--task", "nothing*")
    assert done.returncode == Exit.USAGE
    assert "has no such task to run" in done.stderr


def test_a_harness_s_own_configuration_is_an_option_of_it(orchard: Orchard) -> None:
    asked = ("run", "workbench:1", "--model", "oracle", "--harness", "react", "--harness-config", "own.yaml")
    done = orchard(*asked, "--print-config")
    assert "config_file: own.yaml" in done.stdout
    twice = orchard(*asked, "--harness-option", "config_file=other.yaml")
    assert twice.returncode == Exit.USAGE
    assert "--harness-config and --harness-option config_file= differ" in twice.stderr


def test_a_misspelt_field_of_a_recipe_is_told_and_not_that_a_model_is_missing(
    orchard: Orchard, tmp_path: Path
) -> None:
    (tmp_path / "r.yaml").write_text("taskset: workbench:1\nmodle: oracle\n")
    done = orchard("run", "r.yaml")
    assert done.returncode == Exit.USAGE
    assert done.stderr.startswith("error: r.yaml: unknown field 'modle'; did you mean 'model'?")
