"""Programs beside the driver, and that nothing of them is left, whoever dies."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import textwrap
from pathlib import Path

import pytest

from orchard_core.harness.external.supervised import Ended, run_supervised

FAMILY = """
echo $$ >> pids
sleep 300 & echo $! >> pids
setsid sleep 300 & echo $! >> pids
(setsid sh -c 'echo $$ >> pids; cd /; exec env -i /bin/sleep 300' >/dev/null 2>&1 &)
while [ "$(wc -l < pids)" -lt 4 ]; do sleep 0.01; done
touch ready
"""
"""A program with a child, a child in a session of its own, and a daemon without terminal or environment."""
PATIENCE_S = 30.0


async def run(script: str, directory: Path) -> Ended:
    env = {"PATH": os.environ["PATH"]}
    return await run_supervised(["sh", "-c", script], directory=directory, cwd=directory, env=env)


async def ready(directory: Path) -> list[int]:
    async with asyncio.timeout(PATIENCE_S):
        while not (directory / "ready").exists():
            await asyncio.sleep(0.01)
    return [int(line) for line in (directory / "pids").read_text().split()]


def alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


async def until_gone(pids: list[int], directory: Path) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while any(alive(pid) for pid in pids) or directory.exists():
            await asyncio.sleep(0.01)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A run's private directory."""
    made = tmp_path / "run"
    made.mkdir()
    return made


async def test_output_and_exit_code_are_told(directory: Path) -> None:
    ended = await run("echo out; echo err >&2; cat; exit 3", directory)
    assert ended == Ended(exit_code=3, stdout=b"out\n", stderr=b"err\n")
    assert (await run("kill -9 $$", directory)).exit_code == 128 + signal.SIGKILL


async def test_a_flood_of_output_is_read_and_its_end_kept(directory: Path) -> None:
    ended = await run("head -c 50000000 /dev/zero; echo last", directory)
    assert len(ended.stdout) == 64 << 10
    assert ended.stdout.endswith(b"last\n")


async def test_a_program_that_ends_takes_along_what_it_started(directory: Path) -> None:
    assert (await run(f"{FAMILY} exit 0", directory)).exit_code == 0
    pids = await ready(directory)
    assert len(pids) == 4
    assert [pid for pid in pids if alive(pid)] == []
    assert directory.exists(), "its result is still to be read"


async def test_cancelling_ends_every_process(directory: Path) -> None:
    running = asyncio.create_task(run(f"{FAMILY} sleep 300", directory))
    pids = await ready(directory)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert [pid for pid in pids if alive(pid)] == []
    assert not directory.exists()


async def test_a_program_that_forks_without_end_is_ended(directory: Path) -> None:
    spawn = "spawn() { while :; do sleep 300 & echo $! >> pids; sleep 0.01; done; }"
    spawn += "; touch pids; spawn & spawn & touch ready; wait"
    running = asyncio.create_task(run(spawn, directory))
    await ready(directory)
    async with asyncio.timeout(PATIENCE_S):
        while len(pids := await ready(directory)) < 50:
            await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert [pid for pid in pids if alive(pid)] == []


async def test_killing_the_driver_leaves_no_process_and_no_directory(directory: Path, tmp_path: Path) -> None:
    driver = tmp_path / "driver.py"
    driver.write_text(
        textwrap.dedent(
            f"""
            import asyncio, os
            from pathlib import Path
            from orchard_core.harness.external.supervised import run_supervised
            place = Path({str(directory)!r})
            asyncio.run(run_supervised(["sh", "-c", {f"{FAMILY} sleep 300"!r}],
                directory=place, cwd=place, env={{"PATH": os.environ["PATH"]}}))
            """
        )
    )
    process = await asyncio.create_subprocess_exec(sys.executable, str(driver), start_new_session=True)
    pids = await ready(directory)
    assert all(alive(pid) for pid in pids)
    process.kill()
    await process.wait()
    await until_gone(pids, directory)


async def test_a_program_that_cannot_be_started_says_so(directory: Path) -> None:
    env = {"PATH": "/usr/bin"}
    ended = await run_supervised(["no-such-program"], directory=directory, cwd=directory, env=env)
    assert ended.exit_code == 127
    assert b"no-such-program cannot be started" in ended.stderr
