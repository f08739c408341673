"""One run by several drivers: the same rollouts as by one, each once, whoever is killed when."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from orchard_core import Rollout, Stop, WorkerNews, WorkersFailed, WorkOrder, load_workforce, open_run
from orchard_core.errors import ConfigError
from orchard_core.rollout.share import Share
from orchard_core.types.task import Task

ORCHARD = (sys.executable, "-m", "orchard_core.cli.main")
PATIENCE_S = 120.0
_REPLY = {
    "id": "1", "object": "chat.completion", "created": 1, "model": "gated",
    "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
        "role": "assistant", "content": None, "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "submit", "arguments": "{}"}}]}}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}  # fmt: skip


class Gate(ThreadingHTTPServer):
    """A model that answers, with `submit`, when it is let."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.turns = threading.Semaphore(0)

    def let(self, calls: int = 1) -> None:
        """Let so many calls be answered."""
        self.turns.release(calls)

    def open(self) -> None:
        """Let all of them, from now on."""
        self.let(1000)


class _Answer(BaseHTTPRequestHandler):
    server: Gate

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.turns.acquire()
        body = json.dumps(_REPLY).encode()
        with contextlib.suppress(OSError):  # who asked has been killed
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """Runs of six rollouts that end when they are let."""

    gate: Gate

    def start(self, out: Path, *words: str) -> subprocess.Popen[str]:
        url = f"http://127.0.0.1:{self.gate.server_address[1]}/v1"
        model = ("--model", "openai:gated", "--base-url", url, "--concurrency", "2")
        command = (*ORCHARD, "run", "workbench:6", *model, "--out", str(out), "--plain", *words)
        return subprocess.Popen(
            command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={**os.environ, "OPENAI_API_KEY": "none"},
        )  # fmt: skip


@pytest.fixture
def runs() -> Iterator[Runs]:
    with Gate() as gate:
        threading.Thread(target=gate.serve_forever, daemon=True).start()
        yield Runs(gate=gate)
        gate.open()
        gate.shutdown()


def ended(process: subprocess.Popen[str]) -> str:
    told, _ = process.communicate(timeout=PATIENCE_S)
    return f"exit {process.returncode}\n{told}"


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def until_under_way(out: Path) -> None:
    """Until both workers have begun a rollout."""
    until(lambda: [b'"started"' in path.read_bytes() for path in journals(out)] == [True, True])


def journals(out: Path) -> list[Path]:
    return sorted(out.glob("workers/*/journal.jsonl"))


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
def test_several_workers_make_the_very_rollouts_that_one_makes(runs: Runs, tmp_path: Path) -> None:
    runs.gate.open()
    alone, shared = runs.start(tmp_path / "alone"), runs.start(tmp_path / "shared", "--workers", "3")
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
def test_a_killed_worker_is_started_again_and_goes_on(runs: Runs, tmp_path: Path) -> None:
    out = tmp_path / "run"
    going = runs.start(out, "--workers", "2")
    until_under_way(out)
    os.kill(workers_of(out)[0], signal.SIGKILL)
    runs.gate.open()
    told = ended(going)
    assert "killed by signal 9; started again" in told
    assert len(whole(out)) == 6


@pytest.mark.slow
def test_a_killed_coordinator_loses_nothing_and_another_number_of_workers_goes_on(
    runs: Runs, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    going = runs.start(out, "--workers", "2")
    until_under_way(out)
    runs.gate.let()
    until(lambda: any(b'"finished"' in path.read_bytes() for path in journals(out)))
    going.kill()
    going.communicate()
    runs.gate.open()
    ended(runs.start(out, "--resume", "--workers", "3"))
    assert len(whole(out)) == 6
    assert workers_of(out) == []


@pytest.mark.slow
def test_interrupted_once_the_workers_stop_in_order(runs: Runs, tmp_path: Path) -> None:
    out = tmp_path / "run"
    going = runs.start(out, "--workers", "2")
    until_under_way(out)
    runs.gate.let()
    until(lambda: bool(open_run(out).finished()))
    kept = open_run(out).finished()
    going.send_signal(signal.SIGINT)
    told = ended(going)
    assert told.startswith("exit 130")
    assert "go on with: orchard run --resume --out" in told
    assert workers_of(out) == []
    assert not (out / "workers").exists()
    runs.gate.open()
    ended(runs.start(out, "--resume"))  # by a single driver
    assert len(whole(out)) == 6
    assert [open_run(out).state().finished[entry.id] for entry in kept] == kept


@pytest.mark.slow
async def test_a_worker_that_dies_again_and_again_ends_the_run(runs: Runs, tmp_path: Path) -> None:
    out = tmp_path / "run"
    started = runs.start(out)
    journal = out / "journal.jsonl"
    until(lambda: journal.exists() and b'"started"' in journal.read_bytes())
    started.kill()
    started.communicate()
    order, told = WorkOrder(run=out, count=2, restarts=1), list[WorkerNews]()
    working = asyncio.create_task(load_workforce("processes").work(order, Stop(), told.append))
    while not working.done():
        for pid in await asyncio.to_thread(workers_of, out):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        await asyncio.sleep(0.02)
    with pytest.raises(WorkersFailed, match="killed by signal 9, after 1 restarts") as caught:
        working.result()
    assert f"orchard run --resume --out {out}" in caught.value.hint
    assert "killed by signal 9; started again" in {news.text for news in told}
