"""Nothing is left behind, however a program ends; and nothing of anybody else is touched."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from orchard_env import AsyncSandboxClient, SandboxClient

from orchard_core import OrchardError, SandboxExists, SandboxGone

from ..service.running import GENEROUS_S, Running


def program(service: Running, text: str, tmp_path: Path) -> subprocess.Popen[str]:
    """A Python program of its own process that uses the service."""
    path = tmp_path / "program.py"
    path.write_text(text)
    environment = {**os.environ, "SANDBOX_BASE_URL": service.url}
    return subprocess.Popen(
        [sys.executable, str(path)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=(tmp_path / "stderr").open("w"),
        text=True,
        start_new_session=True,
    )


def line_of(running: subprocess.Popen[str]) -> str:
    assert running.stdout is not None
    return running.stdout.readline().strip()


def stands(client: SandboxClient, sandbox_id: str) -> bool:
    try:
        client.get_sandbox(sandbox_id)
    except SandboxGone:
        return False
    return True


def is_gone(client: SandboxClient, sandbox_id: str) -> bool:
    """Whether it goes, within a bound."""
    deadline = time.monotonic() + GENEROUS_S
    while stands(client, sandbox_id):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def test_importing_the_sdk_changes_no_signal_handler() -> None:
    text = (
        "import signal\nbefore = [signal.getsignal(n) for n in signal.valid_signals()]\n"
        "from orchard_env import SandboxClient\nSandboxClient('http://localhost:1')\n"
        "assert before == [signal.getsignal(n) for n in signal.valid_signals()]\n"
    )
    assert subprocess.run([sys.executable, "-c", text], check=False).returncode == 0


def test_leaving_the_context_deletes(service: Running, client: SandboxClient) -> None:
    with client.create_sandbox("host") as one:
        assert stands(client, one.sandbox_id)
    assert not stands(client, one.sandbox_id)
    with pytest.raises(RuntimeError):
        one.exec("echo no more")
    with SandboxClient(service.url) as other:
        two = other.create_sandbox("host")
    assert not stands(client, two.sandbox_id)


def test_without_cleanup_a_sandbox_outlives_its_client(service: Running, client: SandboxClient) -> None:
    with SandboxClient(service.url, auto_cleanup=False) as other:
        left = other.create_sandbox("host").sandbox_id
    assert stands(client, left)
    client.delete_sandbox(left)
    assert not stands(client, left)
    client.delete_sandbox(left)


def test_the_end_of_a_program_deletes(service: Running, client: SandboxClient, tmp_path: Path) -> None:
    text = (
        "from orchard_env import SandboxClient\n"
        "client = SandboxClient()\nprint(client.create_sandbox('host').sandbox_id, flush=True)\n"
        "raise SystemExit(3)\n"
    )
    running = program(service, text, tmp_path)
    sandbox_id = line_of(running)
    assert running.wait(GENEROUS_S) == 3
    assert sandbox_id
    assert not stands(client, sandbox_id)
    assert (tmp_path / "stderr").read_text() == "", "a client that nobody closed is no reason to complain"


def test_ctrl_c_in_a_command_leaves_nothing(service: Running, client: SandboxClient, tmp_path: Path) -> None:
    text = (
        "from orchard_env import SandboxClient\n"
        "client = SandboxClient()\nbox = client.create_sandbox('host')\nprint(box.sandbox_id, flush=True)\n"
        "box.exec('sleep 600')\n"
    )
    running = program(service, text, tmp_path)
    sandbox_id = line_of(running)
    os.kill(running.pid, signal.SIGINT)
    assert running.wait(GENEROUS_S) != 0
    assert not stands(client, sandbox_id)


def test_ctrl_c_of_the_asynchronous_client_leaves_nothing(
    service: Running, client: SandboxClient, tmp_path: Path
) -> None:
    text = (
        "import asyncio\nfrom orchard_env import AsyncSandboxClient\n"
        "async def main():\n"
        "    async with AsyncSandboxClient() as client:\n"
        "        box = await client.create_sandbox('host')\n"
        "        print(box.sandbox_id, flush=True)\n"
        "        await box.exec('sleep 600')\n"
        "asyncio.run(main())\n"
    )
    running = program(service, text, tmp_path)
    sandbox_id = line_of(running)
    os.kill(running.pid, signal.SIGINT)
    assert running.wait(GENEROUS_S) != 0
    assert not stands(client, sandbox_id)


def test_a_forked_child_uses_and_never_deletes_its_parents_sandbox(
    service: Running, client: SandboxClient, tmp_path: Path
) -> None:
    text = (
        "import os, sys\nfrom orchard_env import SandboxClient\n"
        "client = SandboxClient()\n"
        "with client.create_sandbox('host') as box:\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        assert box.exec('echo child').stdout == 'child\\n'\n"
        "        sys.exit(0)\n"
        "    assert os.waitpid(pid, 0)[1] == 0\n"
        "    assert box.exec('echo parent').stdout == 'parent\\n'\n"
        "    print('both', flush=True)\n"
    )
    running = program(service, text, tmp_path)
    assert line_of(running) == "both"
    assert running.wait(GENEROUS_S) == 0


def test_a_forgotten_client_is_cleaned_up_after(service: Running, client: SandboxClient) -> None:
    forgotten = SandboxClient(service.url)
    sandbox_id = forgotten.create_sandbox("host").sandbox_id
    del forgotten
    assert is_gone(client, sandbox_id)


def test_ids_begin_with_the_prefix(service: Running) -> None:
    with SandboxClient(service.url, prefix="mine") as client:
        assert client.create_sandbox("host").sandbox_id.startswith("mine-")
        name = f"x{uuid.uuid4().hex[:8]}"
        assert client.create_sandbox("host", sandbox_id=name).sandbox_id == f"mine-{name}"


def test_a_taken_id_is_refused_and_its_owner_keeps_it(service: Running, client: SandboxClient) -> None:
    name = f"taken-{uuid.uuid4().hex[:8]}"
    with client.create_sandbox("host", sandbox_id=name):
        with SandboxClient(service.url) as other, pytest.raises(SandboxExists):
            other.create_sandbox("host", sandbox_id=name)
        assert stands(client, name)


def test_what_cannot_be_created_says_why(client: SandboxClient) -> None:
    with pytest.raises(OrchardError, match="image"):
        client.create_sandbox("rootfs:/no/such/root")
    with pytest.raises(OrchardError, match="memory"):
        client.create_sandbox("host", memory="a lot")


async def test_many_are_created_at_once(aclient: AsyncSandboxClient) -> None:
    made = await asyncio.gather(*(aclient.create_sandbox("host") for _ in range(8)))
    said = await asyncio.gather(*(one.exec("echo up") for one in made))
    assert [result.stdout for result in said] == ["up\n"] * 8


async def test_heartbeats_begin_and_end(aclient: AsyncSandboxClient) -> None:
    async with await aclient.create_sandbox("host") as one:
        await one.start_heartbeat(interval=0.05)
        await one.start_heartbeat(interval=0.05)
        assert (await one.exec("echo alive")).succeeded
        await one.stop_heartbeat()
