"""Nothing outlives a driver, however it dies; and nobody touches the sandboxes of one that lives."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from orchard_core.sandbox.agent_sandbox import AgentSandbox
from orchard_core.sandbox.local.account import ROOT
from orchard_core.sandbox.local.box import LocalBox
from orchard_core.sandbox.local.config import LocalConfig
from orchard_core.sandbox.local.host import open_host
from orchard_core.sandbox.local.limits import LimitPlan
from orchard_core.sandbox.local.provider import LocalProvider
from orchard_core.sandbox.local.reaper import Reaped, reap
from orchard_core.types.sandbox import SandboxSpec

_DRIVER = """
import asyncio, sys
from orchard_core.sandbox.local.config import LocalConfig
from orchard_core.sandbox.local.provider import LocalProvider
from orchard_core.types.sandbox import SandboxSpec

async def main():
    provider = LocalProvider(LocalConfig(state_dir=sys.argv[1]))
    for _ in range(2):
        sandbox = await provider.create(SandboxSpec(pids=100))
        await sandbox.exec("setsid sleep 3000 > /dev/null 2>&1 &")
        print(sandbox.id, flush=True)
    print("ready", flush=True)
    await asyncio.sleep(1000)

asyncio.run(main())
"""


def _driver(state: Path) -> tuple[subprocess.Popen[str], list[str]]:
    driver = subprocess.Popen(
        [sys.executable, "-c", _DRIVER, str(state)], stdout=subprocess.PIPE, text=True, cwd=Path.cwd()
    )
    assert driver.stdout is not None
    lines = [line.strip() for line in iter(driver.stdout.readline, "ready\n")]
    return driver, lines


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():
            await asyncio.sleep(0.02)


def _cgroups(state: Path) -> list[Path]:
    names = {f"orchard-{path.name}" for path in (state / "drivers").iterdir()}
    return [path for path in Path("/sys/fs/cgroup").rglob("orchard-*") if path.name in names]


async def test_kill_minus_nine_leaves_nothing_once_reaped(
    state: Path, pids_of: Callable[[str], list[int]]
) -> None:
    driver, ids = await asyncio.to_thread(_driver, state)
    assert all(pids_of(one) for one in ids)
    groups = _cgroups(state)
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    await _until(lambda: not any(pids_of(one) for one in ids))
    told = await asyncio.to_thread(reap, str(state))
    assert (told.drivers, told.sandboxes, told.left) == (1, 2, ())
    assert list((state / "drivers").iterdir()) == []
    assert [path for path in groups if path.exists()] == []
    assert await asyncio.to_thread(reap, str(state)) == Reaped()


async def test_a_provider_cleans_up_after_dead_drivers_when_it_starts(
    state: Path, provider: LocalProvider
) -> None:
    driver, _ = await asyncio.to_thread(_driver, state)
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    dead = next((state / "drivers").iterdir())
    await provider.capabilities()
    assert not dead.exists()


async def test_a_live_driver_is_never_reaped(state: Path, sandbox: AgentSandbox) -> None:
    driver, ids = await asyncio.to_thread(_driver, state)
    try:
        assert await asyncio.to_thread(reap, str(state)) == Reaped()
        assert (await sandbox.exec("echo on")).stdout == b"on\n"
        assert len(ids) == 2
        assert driver.poll() is None
    finally:
        driver.kill()
        driver.wait()
        await asyncio.to_thread(reap, str(state))


async def test_a_closed_provider_leaves_nothing_to_reap(state: Path, provider: LocalProvider) -> None:
    await provider.create(SandboxSpec())
    groups = _cgroups(state)
    await provider.close()
    assert await asyncio.to_thread(reap, str(state)) == Reaped()
    assert list((state / "drivers").iterdir()) == []
    assert [path for path in groups if path.exists()] == []


async def test_a_driver_that_closed_its_provider_may_use_it_again(provider: LocalProvider) -> None:
    await provider.create(SandboxSpec())
    await provider.close()
    async with await provider.create(SandboxSpec()) as sandbox:
        assert (await sandbox.exec("echo on")).stdout == b"on\n"


def test_a_sandbox_outlives_the_thread_that_asked_for_it(provider: LocalProvider) -> None:
    """The kernel ends bubblewrap with the thread that forked it: that must not be the caller's."""
    ids: list[str] = []

    async def make() -> None:
        ids.append((await provider.create(SandboxSpec())).id)

    thread = threading.Thread(target=lambda: asyncio.run(make()))
    thread.start()
    thread.join()
    assert _alive(ids[0])
    asyncio.run(provider.close())


def _alive(word: str) -> bool:
    found = subprocess.run(["pgrep", "-f", word], capture_output=True, check=False)
    return found.returncode == 0


def test_a_broken_state_directory_harms_no_one(tmp_path: Path) -> None:
    assert reap(str(tmp_path / "missing")) == Reaped()
    (tmp_path / "drivers/odd").mkdir(parents=True)
    (tmp_path / "drivers/odd/cgroups.json").write_text('["/sys/fs/cgroup", "/", "not json')
    told = reap(str(tmp_path))
    assert (told.drivers, told.cgroups) == (1, 0)


def test_a_noted_cgroup_of_another_name_is_left_alone(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (tmp_path / "drivers/1-a").mkdir(parents=True)
    (tmp_path / "drivers/1-a/cgroups.json").write_text(f'["{victim}"]')
    reap(str(tmp_path))
    assert victim.is_dir()


@pytest.mark.parametrize("mode", [0o777, 0o755])
def test_an_own_directory_is_closed_to_others(tmp_path: Path, mode: int) -> None:
    from orchard_core.sandbox.local.state import prepare_root

    (tmp_path / "root").mkdir()
    (tmp_path / "root").chmod(mode)
    prepare_root(tmp_path / "root")
    assert (tmp_path / "root").stat().st_mode & 0o777 == 0o700


def _children(name: str) -> list[int]:
    lists = (path.read_text().split() for path in Path("/proc/self/task").glob("*/children"))
    pids = [int(pid) for pids in lists for pid in pids]
    return [pid for pid in pids if Path(f"/proc/{pid}/comm").read_text().strip() == name]


async def test_a_creation_that_is_cancelled_while_it_starts_leaves_no_process(state: Path) -> None:
    host = await asyncio.to_thread(open_host, LocalConfig(state_dir=str(state)))
    with ThreadPoolExecutor(1) as spawner:
        box = LocalBox(
            sandbox_id="box", spec=SandboxSpec(), account=ROOT, limits=LimitPlan(), host=host,
            spawner=spawner, timeout_s=10.0, on_destroyed=lambda: None,
        )  # fmt: skip
        opening = asyncio.create_task(box.open())
        while not (box.path / "agent.sock").exists():
            await asyncio.sleep(0)
        opening.cancel()
        await asyncio.gather(opening, return_exceptions=True)
        await box.destroy()
    assert _children("bwrap") == []
    assert not box.path.exists()
    await asyncio.to_thread(host.close)
