"""Copies that are cut short leave nothing, and the sandbox they were made of as it was."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orchard_core.errors import DiskFull, SandboxGone
from orchard_core.sandbox.agent_sandbox import AgentSandbox
from orchard_core.sandbox.local.config import LocalConfig
from orchard_core.sandbox.local.provider import LocalProvider
from orchard_core.sandbox.local.reaper import reap
from orchard_core.types.sandbox import SandboxSpec

_FILL = "mkdir many; cd many; for n in $(seq 40); do mkdir $n; (cd $n; seq 100 | xargs touch); done"


async def _copying(state: Path) -> None:
    """Until a snapshot has begun to grow."""
    async with asyncio.timeout(90):
        while not list(state.glob("drivers/*/snapshots/*/root/workspace/many/*")):
            await asyncio.sleep(0)


async def _goes_on(sandbox: AgentSandbox) -> None:
    async with asyncio.timeout(90):
        assert (await sandbox.exec("echo on")).stdout == b"on\n"


@pytest.fixture
def copiers(pids_of: Callable[[str], list[int]], state: Path) -> Callable[[], list[int]]:
    """Programs of this provider that copy."""
    return lambda: pids_of(f"--bind\0{state}/drivers")


async def test_a_cancelled_snapshot_leaves_nothing(
    sandbox: AgentSandbox, state: Path, copiers: Callable[[], list[int]]
) -> None:
    await sandbox.exec(_FILL)
    saving = asyncio.create_task(sandbox.snapshot())
    await _copying(state)
    assert copiers()
    saving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await saving
    assert copiers() == []
    assert list(state.glob("drivers/*/snapshots/*")) == []
    await _goes_on(sandbox)


async def test_a_cancelled_fork_leaves_neither_snapshot_nor_child(sandbox: AgentSandbox, state: Path) -> None:
    await sandbox.exec(_FILL)
    forking = asyncio.create_task(sandbox.fork(3))
    async with asyncio.timeout(90):
        while len(list(state.glob("drivers/*/boxes/*/root/workspace/many"))) < 2:
            await asyncio.sleep(0)
    forking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await forking
    assert list(state.glob("drivers/*/snapshots/*")) == []
    assert [path.name for path in state.glob("drivers/*/boxes/*")] == [sandbox.id]
    await _goes_on(sandbox)


async def test_a_sandbox_closed_while_it_is_copied_says_so(
    sandbox: AgentSandbox, state: Path, copiers: Callable[[], list[int]]
) -> None:
    await sandbox.exec(_FILL)
    forking = asyncio.create_task(sandbox.fork(2))
    await _copying(state)
    await sandbox.close()
    with pytest.raises(SandboxGone, match="was closed"):
        await forking
    assert copiers() == []
    assert list(state.glob("drivers/*/snapshots/*")) == []
    assert list(state.glob("drivers/*/boxes/*")) == []


async def test_a_reset_waits_for_the_copy(sandbox: AgentSandbox, state: Path) -> None:
    await sandbox.exec(_FILL)
    saving = asyncio.create_task(sandbox.snapshot())
    await _copying(state)
    await sandbox.reset_processes()
    assert saving.done()
    assert (await saving).size > 0
    await _goes_on(sandbox)


@contextlib.contextmanager
def _small_disk(path: Path) -> Iterator[None]:
    path.mkdir()
    options = ["-t", "tmpfs", "-o", "size=40m,mode=700", "tmpfs", str(path)]
    if os.geteuid() != 0 or subprocess.run(["mount", *options], check=False).returncode != 0:
        pytest.skip("only root may mount a small disk")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


async def test_a_full_disk_is_told_and_nothing_is_left(tmp_path: Path) -> None:
    with _small_disk(tmp_path / "disk"):
        provider = LocalProvider(LocalConfig(state_dir=str(tmp_path / "disk/state")))
        async with await provider.create(SandboxSpec()) as sandbox:
            assert (await sandbox.exec("head -c 16000000 /dev/urandom > big")).ok
            saved = await sandbox.snapshot()
            for work in (sandbox.snapshot, lambda: sandbox.fork(1)):
                with pytest.raises(DiskFull) as full:
                    await work()
                assert "ORCHARD_STATE_DIR" in full.value.hint
            with pytest.raises(DiskFull):
                await provider.create(SandboxSpec(), restore=saved)
            left = list((tmp_path / "disk").glob("state/drivers/*/snapshots/*"))
            assert [path.name for path in left] == [saved.id]
            assert len(list((tmp_path / "disk").glob("state/drivers/*/boxes/*"))) == 1
            await _goes_on(sandbox)
            await provider.discard(saved)
            async with (await sandbox.fork(1))[0] as child:
                assert (await child.stat("/workspace/big")).size == 16_000_000
        await provider.close()


_DRIVER = """
import asyncio, sys
from orchard_core.sandbox.local.config import LocalConfig
from orchard_core.sandbox.local.provider import LocalProvider
from orchard_core.types.sandbox import SandboxSpec

async def main():
    provider = LocalProvider(LocalConfig(state_dir=sys.argv[1]))
    sandbox = await provider.create(SandboxSpec())
    await sandbox.exec(sys.argv[2])
    await sandbox.snapshot()
    print("ready", flush=True)
    while True:
        await sandbox.snapshot()

asyncio.run(main())
"""


async def test_a_driver_killed_while_it_copies_leaves_nothing_once_reaped(
    state: Path, copiers: Callable[[], list[int]]
) -> None:
    driver = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _DRIVER, str(state), _FILL, stdout=asyncio.subprocess.PIPE
    )
    assert driver.stdout is not None
    assert await driver.stdout.readline() == b"ready\n"
    async with asyncio.timeout(90):
        while not copiers():
            await asyncio.sleep(0)
    driver.kill()
    await driver.wait()
    async with asyncio.timeout(90):
        while copiers():
            await asyncio.sleep(0.01)
    told = await asyncio.to_thread(reap, str(state))
    assert told.drivers == 1
    assert told.snapshots >= 1
    assert told.left == ()
    assert list((state / "drivers").iterdir()) == []
