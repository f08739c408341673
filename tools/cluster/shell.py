"""Programs: run to their end, started, found again and ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

Word = str | Path


def say(text: str) -> None:
    """A line for the person who waits."""
    print(f"cluster: {text}", file=sys.stderr, flush=True)


class Failed(Exception):
    """Something that was needed did not work; the message says what."""


def run(
    *command: Word, cwd: Path | None = None, env: Mapping[str, str] | None = None, log: Path | None = None
) -> str:
    """Standard output of a program. Raises Failed with its last words."""
    with contextlib.ExitStack() as stack:
        out = stack.enter_context(log.open("w")) if log else subprocess.PIPE
        done = subprocess.run(
            [str(word) for word in command], cwd=cwd, env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
    if done.returncode != 0:
        words = (log.read_text(errors="replace") if log else done.stdout)[-2000:]
        raise Failed(f"{command[0]} failed with exit code {done.returncode}:\n{words}")
    return done.stdout or ""


def start(logs: Path, name: str, *command: Word, env: Mapping[str, str] | None = None) -> int:
    """Start a program that goes on when we end. Its pid."""
    with (logs / f"{name}.log").open("w") as log:
        process = subprocess.Popen(
            [str(word) for word in command], env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    (logs / f"{name}.pid").write_text(str(process.pid))
    return process.pid


def wait_for(what: str, holds: Callable[[], bool], *, within_s: float = 120.0) -> None:
    """Until it holds. Raises Failed."""
    end = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > end:
            raise Failed(f"{what} within {within_s:g} s: see the logs")
        time.sleep(0.1)


def works(*command: Word) -> bool:
    """Whether a program ends with 0."""
    done = subprocess.run([str(word) for word in command], capture_output=True, check=False)
    return done.returncode == 0


def end(logs: Path, name: str, *, within_s: float = 10.0) -> None:
    """End what `start` started: by request, then by force. Fine when it is gone."""
    pid_file = logs / f"{name}.pid"
    if not pid_file.exists():
        return
    pid = int(pid_file.read_text())
    deadline = time.monotonic() + within_s
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        while _runs(pid) and time.monotonic() < deadline:
            time.sleep(0.05)
    pid_file.unlink()


def _runs(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    return False
