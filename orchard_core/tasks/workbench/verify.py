"""The verifier of every workbench task: it runs inside a sandbox, on the standard library alone.

It reads `expected.json` beside it and writes the reward itself. Whatever an agent may have put at an output's
place (a link, a pipe, a huge file, odd bytes) is a failure, never a crash.

Code under test runs as the same user, so it could write a reward too, or look here for the answers. It can do
neither: this process cannot be looked into, everything the code has started is dead before the reward is
written, and where the code kills or breaks this process, its exit code says so and no reward is believed.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import traceback
from collections.abc import Callable
from typing import Any

LIMIT = 4 << 20
LOGS = "/logs/verifier"
BROKEN = 255
DUMPABLE, SUBREAPER = 4, 36

RUNNER = """
import importlib.util, json, sys
path, cases = sys.argv[1], json.load(sys.stdin)
spec = importlib.util.spec_from_file_location("subject", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
print(json.dumps([getattr(module, name)(*args) for name, args in cases]))
"""


def shield() -> None:
    """Nobody may read this process's memory, and what its children leave behind becomes its own."""
    prctl = ctypes.CDLL(None).prctl
    if prctl(DUMPABLE, 0, 0, 0, 0) or prctl(SUBREAPER, 1, 0, 0, 0):
        raise OSError("the verifier cannot protect itself")


def sweep() -> None:
    """Kill every process below this one, those that left their session too."""
    while below := [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if is_ours(pid)]:  # noqa: PTH208
        for pid in below:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def is_ours(pid: int) -> bool:
    """Whether this process is the parent: a subreaper becomes that of all orphans below it."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return False
    return int(fields[1]) == os.getpid()


def write_reward(reward: int) -> None:
    """The only reward there is, whatever else lies in its place."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(LOGS) if os.path.islink(LOGS) else shutil.rmtree(LOGS)  # noqa: PTH108, PTH114
    os.makedirs(LOGS)  # noqa: PTH103
    with open(f"{LOGS}/reward.txt", "w", encoding="ascii") as file:  # noqa: PTH123
        file.write(f"{reward}\n")


class Wrong(Exception):
    """An output is not what was asked for."""


def content(path: str) -> bytes:
    """A plain file's bytes."""
    try:
        info = os.lstat(path)
    except OSError:
        raise Wrong("is missing") from None
    if not stat.S_ISREG(info.st_mode):
        raise Wrong("is not a plain file")
    if info.st_size > LIMIT:
        raise Wrong("is too large")
    with open(path, "rb") as file:  # noqa: PTH123 - this file runs alone, on any Python 3
        return file.read()


def text(path: str) -> str:
    """A plain file's text."""
    try:
        return content(path).decode("utf-8")
    except UnicodeDecodeError:
        raise Wrong("is not UTF-8 text") from None


def lines(value: str) -> list[str]:
    """Lines without blanks at their ends."""
    return [line.rstrip() for line in value.strip().splitlines()]


def check_text(path: str, value: str) -> None:
    """Equal but for blanks at either end."""
    if text(path).strip() != value.strip():
        raise Wrong("has the wrong content")


def check_lines(path: str, value: str) -> None:
    """Equal line by line."""
    if lines(text(path)) != lines(value):
        raise Wrong("has the wrong lines")


def check_json(path: str, value: Any) -> None:
    """Equal as data; 1 and 1.0 are the same number."""
    try:
        found = json.loads(text(path))
    except (ValueError, RecursionError):
        raise Wrong("is not JSON") from None
    if found != value:
        raise Wrong("holds the wrong data")


def check_bytes(path: str, value: str) -> None:
    """Equal byte for byte."""
    if content(path) != value.encode("latin-1"):
        raise Wrong("is not byte for byte what it should be")


def check_absent(path: str, _: object) -> None:
    """Not there."""
    if os.path.lexists(path):
        raise Wrong("should not be there")


def check_python(path: str, value: list[list[Any]]) -> None:
    """Functions give the expected answers, in a process that does not know them."""
    content(path)
    cases = json.dumps([[name, args] for name, args, _ in value])
    command = [sys.executable, "-I", "-c", RUNNER, path]
    try:
        run = subprocess.run(
            command, input=cases, capture_output=True, text=True, timeout=20, cwd="/", check=False
        )
        answers = json.loads(run.stdout)
    except subprocess.TimeoutExpired:
        raise Wrong("does not come to an end") from None
    except ValueError:
        raise Wrong("cannot be imported, or one of its functions fails") from None
    finally:
        sweep()
    if answers != [result for _, _, result in value]:
        raise Wrong("gives wrong answers")


CHECKS: dict[str, Callable[[str, Any], None]] = {
    "text": check_text,
    "lines": check_lines,
    "json": check_json,
    "bytes": check_bytes,
    "absent": check_absent,
    "python": check_python,
}


def main() -> None:
    """Judge every output."""
    shield()
    place = os.path.join(os.path.dirname(os.path.abspath(__file__)), "expected.json")  # noqa: PTH100, PTH118, PTH120
    with open(place, encoding="utf-8") as file:  # noqa: PTH123
        expected = json.load(file)
    os.remove(place)  # noqa: PTH107 - so that code under test cannot read the answers
    failed = 0
    for path, check in expected["outputs"].items():
        try:
            CHECKS[check["kind"]](os.path.join(expected["workdir"], path), check["value"])  # noqa: PTH118
        except Wrong as error:
            failed += 1
            sys.stdout.write(f"{path} {error}\n")
    sys.stdout.write(f"{len(expected['outputs']) - failed} of {len(expected['outputs'])} outputs are right\n")
    write_reward(0 if failed else 1)


if __name__ == "__main__":
    try:
        main()
    except BaseException:  # noqa: BLE001 - border: whatever broke, no reward that lies there may count
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(BROKEN)
