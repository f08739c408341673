"""A copy is of one moment, and those who were stopped for it do not notice."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable

from orchard_core.sandbox.agent_sandbox import AgentSandbox
from orchard_core.sandbox.contract import Sandbox
from orchard_core.sandbox.local.stillness import still

_LOCKSTEP = """
import os
first, second = (os.open(name, os.O_RDWR | os.O_CREAT) for name in ("first", "second"))
number = 0
while True:
    number += 1
    os.pwrite(first, b"%012d" % number, 0)
    os.pwrite(second, b"%012d" % number, 0)
"""
_NEST = """
import os, time
for _ in range(5):
    os.fork()
os.write(1, b"%d\\n" % os.getpid())
time.sleep(1000)
"""
_JOBS = """
set -m
sleep 1000 &
echo $! > pid
echo ready > ready
wait
echo "the shell took its job for $?" > noticed
"""


async def _until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(90):
        while not await holds():
            await asyncio.sleep(0.02)


async def _there(sandbox: Sandbox, name: str) -> bool:
    return (await sandbox.exec(["test", "-s", name])).ok


async def test_files_written_in_lockstep_are_saved_in_step(sandbox: AgentSandbox) -> None:
    await sandbox.start(["python3", "-c", _LOCKSTEP])
    await _until(lambda: _there(sandbox, "second"))
    for _ in range(3):
        (child,) = await sandbox.fork(1)
        async with child:
            first = int(await child.read_bytes("/workspace/first"))
            second = int(await child.read_bytes("/workspace/second"))
            assert 0 <= first - second <= 1
    before = int(await sandbox.read_bytes("/workspace/second"))

    async def grew() -> bool:
        return int(await sandbox.read_bytes("/workspace/second")) > before

    await _until(grew)


async def test_a_shell_with_job_control_does_not_notice(sandbox: AgentSandbox) -> None:
    await sandbox.start(["bash", "-c", _JOBS])
    await _until(lambda: _there(sandbox, "ready"))
    for _ in range(3):
        await (await sandbox.fork(1))[0].close()
    state = await sandbox.exec("cat /proc/$(cat pid)/stat")
    assert state.stdout_text.split()[2] == "S"
    assert not await _there(sandbox, "noticed")


async def test_what_its_user_stopped_stays_stopped(sandbox: AgentSandbox) -> None:
    stopped = "until grep -q 'State:.T' /proc/$!/status; do sleep 0.01; done"
    await sandbox.exec(f"sleep 1000 > /dev/null 2>&1 & echo $! > pid; kill -STOP $!; {stopped}", timeout=60)
    await (await sandbox.fork(1))[0].close()
    state = await sandbox.exec("cat /proc/$(cat pid)/stat")
    assert state.stdout_text.split()[2] == "T"


def test_everything_below_a_process_stands_and_goes_on() -> None:
    root = subprocess.Popen(
        [sys.executable, "-c", _NEST], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert root.stdout is not None
    pids = [int(root.stdout.readline()) for _ in range(32)]
    descriptor = os.pidfd_open(root.pid)
    try:
        stillness = still(root.pid, descriptor)
        assert stillness.complete
        assert len(stillness.descriptors) == 32
        assert {_state(pid) for pid in pids} == {"T"}
        stillness.end()
        assert "T" not in {_state(pid) for pid in pids}
        stillness.end()
    finally:
        os.killpg(root.pid, signal.SIGKILL)
        root.wait()
        os.close(descriptor)


def test_of_a_process_that_has_ended_nothing_is_stopped() -> None:
    root = subprocess.Popen(["true"])
    descriptor = os.pidfd_open(root.pid)
    root.wait()
    assert still(root.pid, descriptor).descriptors == []
    os.close(descriptor)


def _state(pid: int) -> str:
    with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123 - a process file, read at once
        return file.read().rpartition(")")[2].split()[0]
