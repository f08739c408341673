"""One run by several drivers: the same rollouts as by one, each once, whoever is killed when."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchard_core import Rollout, open_run
from orchard_core.errors import ConfigError
from orchard_core.rollout.share import Share
from orchard_core.types.task import Task

ORCHARD = (sys.executable, "-m", "orchard_core.cli.main")
PATIENCE_S = 60.0
SLOW = '{"text": "", "calls": [{"name": "bash", "arguments": {"command": "sleep 1"}}]}\n'
SUBMIT = '{"text": "done", "calls": [{"name": "submit", "arguments": {}}]}\n'


def run(out: Path, *words: str) -> subprocess.Popen[str]:
    """A run of six short tasks, a few seconds long."""
    script = out.parent / "script.jsonl"
    script.write_text(SLOW * 2 + SUBMIT)
    command = (*ORCHARD, "run", "workbench:6", "--model", f"scripted:{script}", "--out", str(out), "--plain")
    return subprocess.Popen(
        [*command, "--concurrency", "2", *words], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def ended(process: subprocess.Popen[str]) -> str:
    told, _ = process.communicate(timeout=PATIENCE_S)
    return f"exit {process.returncode}\n{told}"


def until_under_way(out: Path) -> None:
    """Until every worker has begun a rollout."""
    deadline = time.monotonic() + PATIENCE_S
    while [b'"started"' in path.read_bytes() for path in out.glob("workers/*/journal.jsonl")] != [True, True]:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def until_finished(out: Path) -> None:
    """Until a rollout is in the run."""
    deadline = time.monotonic() + PATIENCE_S
    while not open_run(out).finished():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def workers_of(out: Path) -> list[int]:
    """Pids of the workers of a run."""
    found = []
    for line in subprocess.run(
        ["ps", "-eww", "-o", "pid,args"], capture_output=True, text=True, check=True
    ).stdout.splitlines():
        pid, _, words = line.strip().partition(" ")
        if " worker " in words and str(out) in words:
            found.append(int(pid))
    return found


def told_by(rollouts: Iterator[Rollout]) -> dict[str, object]:
    """What does not depend on who drove it, and when."""
    return {
        one.id: (one.task.id, one.seed, one.outcome, one.score, one.provenance.config_digest, one.tries)
        for one in rollouts
    }


def whole(out: Path) -> dict[str, object]:
    """Every rollout of a run, which is there once and undamaged."""
    opened = open_run(out)
    assert opened.damaged() == []
    assert opened.missing() == []
    lines = [entry.id for name in opened.state().finished for entry in opened.history(name)]
    assert sorted(lines) == sorted(set(lines))
    return told_by(opened.rollouts())


def test_shares_hold_each_task_once() -> None:
    tasks = _numbered(11)
    shares = [Share(index=index, count=3).of(tasks) for index in range(3)]
    assert [len(share) for share in shares] == [4, 4, 3]
    assert sorted(name for share in shares for name in share) == sorted(tasks)
    with pytest.raises(ConfigError, match="no worker 3 of 3"):
        Share(index=3, count=3)


def _numbered(count: int) -> dict[str, Task]:
    return {f"task-{n}": Task(id=f"task-{n}", taskset="fake", instruction="Go.") for n in range(count)}


@pytest.mark.slow
def test_several_workers_make_the_very_rollouts_that_one_makes(tmp_path: Path) -> None:
    alone, shared = run(tmp_path / "alone"), run(tmp_path / "shared", "--workers", "3")
    assert ended(alone).startswith("exit 0\n")
    assert ended(shared).startswith("exit 0\n")
    made = whole(tmp_path / "shared")
    assert len(made) == 6
    assert made == whole(tmp_path / "alone")
    assert not (tmp_path / "shared/workers").exists()
    for one in open_run(tmp_path / "shared"):
        for artifact in one.artifacts:
            assert open_run(tmp_path / "shared").blobs.path(artifact.sha256).stat().st_size == artifact.size


@pytest.mark.slow
def test_a_killed_worker_is_started_again_and_goes_on(tmp_path: Path) -> None:
    out = tmp_path / "run"
    going = run(out, "--workers", "2")
    until_under_way(out)
    os.kill(workers_of(out)[0], signal.SIGKILL)
    told = ended(going)
    assert "killed by signal 9; started again" in told
    assert len(whole(out)) == 6


@pytest.mark.slow
def test_a_killed_coordinator_loses_nothing_and_another_number_of_workers_goes_on(tmp_path: Path) -> None:
    out = tmp_path / "run"
    going = run(out, "--workers", "2")
    until_under_way(out)
    until_finished(out)
    going.kill()
    going.communicate()
    deadline = time.monotonic() + PATIENCE_S
    while workers_of(out):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    before = {entry.id for entry in open_run(out).finished()}
    assert before
    ended(run(out, "--resume", "--workers", "3"))
    assert before <= set(whole(out))
    assert len(whole(out)) == 6


@pytest.mark.slow
def test_interrupted_once_the_workers_stop_in_order(tmp_path: Path) -> None:
    out = tmp_path / "run"
    going = run(out, "--workers", "2")
    until_under_way(out)
    going.send_signal(signal.SIGINT)
    told = ended(going)
    assert told.startswith("exit 130")
    assert "go on with: orchard run --resume --out" in told
    assert workers_of(out) == []
    ended(run(out, "--resume"))  # by a single driver
    assert len(whole(out)) == 6


@pytest.mark.slow
def test_a_worker_that_dies_again_and_again_ends_the_run_with_its_words(tmp_path: Path) -> None:
    out = tmp_path / "run"
    going = run(out, "--workers", "2")
    while going.poll() is None:
        for pid in workers_of(out):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
    told = ended(going)
    assert "killed by signal 9, after 3 restarts" in told
    assert f"orchard run --resume --out {out}" in told
    ended(run(out, "--resume"))
    assert len(whole(out)) == 6
