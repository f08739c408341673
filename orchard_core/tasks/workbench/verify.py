"""The verifier of every workbench task: it runs inside a sandbox, on the standard library alone.

It reads `expected.json` beside it, and answers with its exit code: 0 passed, 9 failed, anything else means
that the verifier itself broke. Whatever an agent may have put at an output's place (a link, a pipe, a huge
file, odd bytes) is a failure, never a crash.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from typing import Any

FAILED = 9
LIMIT = 4 << 20

RUNNER = """
import importlib.util, json, sys
path, cases = sys.argv[1], json.load(sys.stdin)
spec = importlib.util.spec_from_file_location("subject", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
print(json.dumps([getattr(module, name)(*args) for name, args in cases]))
"""


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


def main() -> int:
    """Judge every output."""
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
    return FAILED if failed else 0


if __name__ == "__main__":
    sys.exit(main())
