"""`orchard run`, killed with SIGKILL under any harness, leaves no process, on the host or in a sandbox."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from orchard_core import SandboxUnavailable, load_provider
from orchard_core.testing import skip_without_isolation

from .every import Driven, each, script

pytestmark = pytest.mark.slow
PATIENCE_S = 120.0
BOUND_S = 20.0
"""Within which everything must have ended after the driver."""


@each
async def test_killing_the_driver_leaves_no_process(driven: Driven, tmp_path: Path) -> None:
    try:
        await load_provider("local").capabilities()
    except SandboxUnavailable as error:
        skip_without_isolation(error)
    name = str(driven.load(tmp_path).name)
    written = f"command:{tmp_path}/shell-harness.sh" if name == "command" else driven.name
    marks = [f"4{os.getpid()}.{n}" for n in (1, 2)]
    replies = tmp_path / "replies.jsonl"
    replies.write_text(script(driven, [f"(setsid sleep {marks[0]} > /dev/null 2>&1 &); sleep {marks[1]}"]))
    options = [f"--harness-option={key}={value}" for key, value in driven.options.items()]
    driver = await asyncio.create_subprocess_exec(
        *(
            sys.executable,
            "-m",
            "orchard_core.cli.main",
            "run",
            "workbench:1",
            "--harness",
            written,
            *options,
        ),
        *("--model", f"scripted:{replies}", "--out", str(tmp_path / "run"), "--plain"),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        await _until(
            lambda: all(_running(mark) for mark in marks) or driver.returncode is not None, PATIENCE_S
        )
        assert driver.returncode is None, "it ended before the agent acted"
        family = _descendants(driver.pid)
        assert family
    finally:
        with contextlib.suppress(ProcessLookupError):
            driver.send_signal(signal.SIGKILL)
        await driver.wait()
    await _until(lambda: not [one for one in family if _same(one)] and not any(map(_running, marks)), BOUND_S)


async def _until(holds: Callable[[], bool], limit_s: float) -> None:
    async with asyncio.timeout(limit_s):
        while not holds():
            await asyncio.sleep(0.05)


def _running(mark: str) -> bool:
    """A process has this among its arguments, seen from the host, which sees into every sandbox."""
    return any(mark.encode() in _read(pid, "cmdline").split(b"\0") for pid in _pids())


def _descendants(root: int) -> list[tuple[int, bytes]]:
    """Every process below this one, with the time it started, for ids are used again."""
    parents = {pid: int(stat[1]) for pid in _pids() if (stat := _stat(pid))}
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return [(pid, stat[19]) for pid in found if (stat := _stat(pid))]


def _same(one: tuple[int, bytes]) -> bool:
    stat = _stat(one[0])
    return bool(stat) and stat[19] == one[1] and stat[0] not in (b"Z", b"X")


def _stat(pid: int) -> list[bytes]:
    """State, parent, ...; what stands after the name."""
    return _read(pid, "stat").rpartition(b")")[2].split()


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""
