"""Running a contract suite in a process of its own, and following what it finds."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import IO

from orchard_core.errors import PluginNotInstalled
from orchard_core.types.check import Finding, Subject

NEEDED = ("pytest", "pytest_asyncio")
_START_S = 120.0
"""For imports and collection, seconds: a plugin's may be heavy."""


@dataclass(slots=True, kw_only=True)
class Checked:
    """One subject's whole result."""

    subject: Subject
    """What was checked."""
    passed: int = 0
    """Rules that hold."""
    skipped: list[Finding] = field(default_factory=list)
    """Rules that do not apply."""
    failed: list[Finding] = field(default_factory=list)
    """Rules that do not hold."""

    @property
    def name(self) -> str:
        """Such as `harness:cli:pi`."""
        return f"{self.subject.kind.value}:{self.subject.spec}"

    def take(self, finding: Finding) -> None:
        """Count it."""
        if finding.state == "failed":
            self.failed.append(finding)
        elif finding.state == "skipped":
            self.skipped.append(finding)
        elif finding.state == "passed":
            self.passed += 1


def need_pytest() -> None:
    """Raises PluginNotInstalled where the suites cannot run."""
    missing = [module for module in NEEDED if find_spec(module) is None]
    if missing:
        raise PluginNotInstalled(
            f"the contract suites need {' and '.join(missing)}",
            hint="pip install 'orchard-core[check]'; in a clone, make demo puts them into .venv",
        )


def follow(subject: Subject, *, quiet_s: float) -> Iterator[Finding]:
    """Findings as they come. A test that says nothing for `quiet_s` seconds is ended, and fails."""
    command = [sys.executable, "-m", "orchard_core.testing.check", subject.model_dump_json()]
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, encoding="utf-8", errors="replace", start_new_session=True,
    )  # fmt: skip
    lines: queue.Queue[str | None] = queue.Queue()
    assert process.stdout is not None
    assert process.stderr is not None
    said: list[str] = []
    readers = [
        threading.Thread(target=_lines, args=(process.stdout, lines), daemon=True),
        threading.Thread(target=_tail, args=(process.stderr, said), daemon=True),
    ]
    for reader in readers:
        reader.start()
    try:
        yield from _findings(process, lines, said, quiet_s)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        process.wait()
        for reader in readers:
            reader.join(5)


def _findings(
    process: subprocess.Popen[str], lines: queue.Queue[str | None], said: list[str], quiet_s: float
) -> Iterator[Finding]:
    running = ""
    any_ended = False
    while True:
        try:
            line = lines.get(timeout=quiet_s if running else max(quiet_s, _START_S))
        except queue.Empty:
            yield Finding(test=running or "start", state="failed", seen=f"it said nothing for {quiet_s:g} s")
            return
        if line is None:
            break
        finding = Finding.model_validate_json(line)
        running = finding.test if finding.state == "started" else ""
        any_ended = any_ended or finding.state != "started"
        yield finding
    code = process.wait()
    if running or not any_ended:
        tail = " ".join("".join(said)[-600:].split())
        yield Finding(
            test=running or "start", state="failed", seen=f"the checking process ended with {code}: {tail}"
        )


def _lines(stream: IO[str], lines: queue.Queue[str | None]) -> None:
    for line in stream:
        lines.put(line)
    lines.put(None)


def _tail(stream: IO[str], said: list[str]) -> None:
    for line in stream:
        said.append(line)
        del said[:-50]
