"""The verifier of every claw-bench task: it runs inside a sandbox, on the standard library alone.

The task's own checks run in a child process, because some of them import what an agent wrote. This process
imports nothing of an agent's: it removes whatever reward lies there, waits for the child, kills all that the
child left behind, and only then writes the reward from what the child told of each check.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

LOGS = Path("/logs/verifier")
BROKEN = 255
DUMPABLE, SUBREAPER = 4, 36
JUDGED = (0, 1)
"""pytest's exit codes for: all checks passed, some failed."""

PASSED = {"collected", "setup:passed", "call:passed", "teardown:passed"}
"""All that is told of a check that passed."""

Report = dict[str, set[str]]
"""What was told of each check, by the check's id."""


def shield() -> None:
    """Nobody may read this process's memory, and what its children leave behind becomes its own."""
    prctl = ctypes.CDLL(None).prctl
    if prctl(DUMPABLE, 0, 0, 0, 0) or prctl(SUBREAPER, 1, 0, 0, 0):
        raise OSError("the verifier cannot protect itself")


def sweep() -> None:
    """Kill every process below this one, those that left their session too."""
    while below := [int(each.name) for each in Path("/proc").glob("[0-9]*") if is_ours(each)]:
        for pid in below:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def is_ours(process: Path) -> bool:
    """Whether this process is the parent: a subreaper becomes that of all orphans below it."""
    try:
        fields = (process / "stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return False
    return int(fields[1]) == os.getpid()


def clear() -> None:
    """No reward lies there, whatever was put in its place."""
    with contextlib.suppress(FileNotFoundError):
        LOGS.unlink() if LOGS.is_symlink() else shutil.rmtree(LOGS)
    LOGS.mkdir(parents=True)


def run_checks(options: list[str]) -> tuple[int, Report]:
    """pytest's exit code, and what became of each check.

    The report goes through a file that has no name, in lines that begin with a secret. The secret travels
    through a pipe, so that neither the child's environment nor its arguments show it.
    """
    secret = secrets.token_hex(16)
    with tempfile.TemporaryFile() as report:
        source, sink = os.pipe()
        os.write(sink, secret.encode())
        os.close(sink)
        child = subprocess.Popen(
            [sys.executable, "-m", "pytest", *options, "-p", "orchard_report"],
            stdin=subprocess.DEVNULL,
            env={**os.environ, "CHECKS_REPORT": f"{source} {report.fileno()}"},
            pass_fds=[source, report.fileno()],
            cwd=Path(__file__).parent,
        )
        os.close(source)
        status = child.wait()
        sweep()
        report.seek(0)
        return status, read(report.read().decode("ascii", "replace").splitlines(), secret)


def read(lines: list[str], secret: str) -> Report:
    """What was told of each check, by those lines that begin with the secret."""
    found: Report = {}
    for line in lines:
        key, _, rest = line.partition(" ")
        if key == secret:
            told, _, check = rest.partition(" ")
            found.setdefault(check, set()).add(told)
    return found


def main() -> None:
    """Judge, and write the reward when nothing else is alive."""
    shield()
    clear()
    status, report = run_checks(sys.argv[1:])
    clear()
    if status not in JUDGED or not report:
        sys.exit(f"pytest ended with {status} after {len(report)} checks, so nothing was judged")
    passed = sum(told == PASSED for told in report.values())
    unended = sum(not any(each.startswith("teardown:") for each in told) for told in report.values())
    sys.stdout.write(f"{passed} of {len(report)} checks passed, {unended} never came to their end\n")
    won = status == 0 and passed > 0 and unended == 0
    reward = {"reward": float(won), "checks": passed / len(report)}
    (LOGS / "reward.json").write_text(json.dumps(reward), encoding="ascii")


if __name__ == "__main__":
    try:
        main()
    except SystemExit:
        raise
    except BaseException:  # noqa: BLE001 - border: whatever broke, no reward that lies there may count
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(BROKEN)
