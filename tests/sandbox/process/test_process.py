"""The process provider: no isolation, said openly; but nothing left behind, and no key handed over."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from orchard_core import SandboxProvider
from orchard_core.errors import SandboxUnsupported
from orchard_core.sandbox.local.reaper import reap
from orchard_core.sandbox.process.config import ProcessConfig
from orchard_core.sandbox.process.provider import open_process
from orchard_core.types.sandbox import ImageRef, Mount, Network, NetworkMode, SandboxSpec

_DRIVER = """
import asyncio, sys
from orchard_core.sandbox.process.config import ProcessConfig
from orchard_core.sandbox.process.provider import open_process
from orchard_core.types.sandbox import SandboxSpec

async def main():
    provider = open_process(ProcessConfig(state_dir=sys.argv[1]))
    sandbox = await provider.create(SandboxSpec())
    result = await sandbox.exec("setsid sleep 3000 > /dev/null 2>&1 & echo $!")
    print(result.stdout_text, end="", flush=True)
    await asyncio.sleep(1000)

asyncio.run(main())
"""


@pytest_asyncio.fixture
async def provider(tmp_path: Path) -> AsyncIterator[SandboxProvider]:
    made = open_process(ProcessConfig(state_dir=str(tmp_path / "state")))
    yield made
    await made.close()


async def test_it_says_that_it_does_not_isolate(provider: SandboxProvider) -> None:
    able = await provider.capabilities()
    assert not able.isolated
    assert able.limits == {}
    assert able.networks == {NetworkMode.HOST}


async def test_workspace_stands_for_a_fresh_directory(provider: SandboxProvider) -> None:
    async with await provider.create(SandboxSpec()) as one, await provider.create(SandboxSpec()) as two:
        assert (await one.exec("pwd -P")).stdout_text.strip() == os.path.realpath(one.spec.workdir)
        assert one.spec.workdir != two.spec.workdir
        place = Path(one.spec.workdir)
    assert not place.exists()


async def test_an_existing_directory_is_used_and_stays(provider: SandboxProvider, tmp_path: Path) -> None:
    async with await provider.create(SandboxSpec(workdir=str(tmp_path))) as sandbox:
        await sandbox.exec("echo x > made")
    assert (tmp_path / "made").read_text() == "x\n"


@pytest.mark.parametrize(
    "spec",
    [
        SandboxSpec(workdir="/no/such/directory"),
        SandboxSpec(image=ImageRef(kind="rootfs", value="/tmp")),
        SandboxSpec(memory_mb=100),
        SandboxSpec(cpu=1),
        SandboxSpec(pids=10),
        SandboxSpec(disk_mb=10),
        SandboxSpec(user="nobody"),
        SandboxSpec(mounts=(Mount(source="/usr", target="/x"),)),
        SandboxSpec(network=Network(mode=NetworkMode.OPEN)),
        SandboxSpec(network=Network(mode=NetworkMode.ALLOW_LIST, allow=("x.org",))),
    ],
    ids=lambda spec: spec.model_dump_json(exclude_defaults=True)[:60],
)
async def test_what_it_cannot_give_is_refused(provider: SandboxProvider, spec: SandboxSpec) -> None:
    with pytest.raises(SandboxUnsupported):
        await provider.create(spec)


async def test_daemons_end_with_the_sandbox(provider: SandboxProvider) -> None:
    async with await provider.create(SandboxSpec()) as sandbox:
        pid = int((await sandbox.exec("setsid sleep 3000 > /dev/null 2>&1 & echo $!")).stdout)
        assert Path(f"/proc/{pid}").exists()
    await _collected(pid)


async def test_daemons_end_with_a_killed_driver_and_its_directory_is_reaped(tmp_path: Path) -> None:
    driver = await asyncio.to_thread(
        subprocess.Popen, [sys.executable, "-c", _DRIVER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert driver.stdout is not None
    pid = int(await asyncio.to_thread(driver.stdout.readline))
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    await _collected(pid)
    told = await asyncio.to_thread(reap, str(tmp_path))
    assert (told.drivers, told.sandboxes, told.left) == (1, 1, ())
    assert list((tmp_path / "drivers").iterdir()) == []


async def _collected(pid: int) -> None:
    """A killed process is a zombie until its new parent, the system's init, has looked at it."""
    async with asyncio.timeout(30):
        while Path(f"/proc/{pid}").exists():
            await asyncio.sleep(0.02)
