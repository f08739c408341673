"""Files outlive a reset, in every layer; what runs does not."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from orchard_core.errors import AgentRefused, SandboxGone
from orchard_core.sandbox.agent import AgentClient
from orchard_core.sandbox.agent_sandbox import AgentSandbox
from orchard_core.sandbox.local.provider import LocalProvider
from orchard_core.types.sandbox import FileInput, Mount, SandboxSpec


async def test_a_reset_keeps_files_everywhere_and_ends_the_old_token(sandbox: AgentSandbox) -> None:
    places = ["/workspace/f", "/tmp/f", "/root/f", "/etc/f", "/opt/f"]
    if os.geteuid() == 0:
        places.append("/usr/lib/f")
    await sandbox.exec(f"for p in {' '.join(places)}; do echo kept > $p; done; rm /etc/services")
    await sandbox.exec("setsid sleep 1000 > /dev/null 2>&1 & echo $! > /workspace/pid")
    old = await sandbox.endpoint()
    await sandbox.reset_processes()
    assert (await sandbox.exec(["cat", *places])).stdout == b"kept\n" * len(places)
    assert not (await sandbox.exec("test -e /etc/services")).ok, "a deletion lasts too"
    comms = await sandbox.exec("cat /proc/[0-9]*/comm")
    assert "sleep" not in comms.stdout_text.split()
    async with AgentClient(old) as client:
        with pytest.raises((AgentRefused, SandboxGone)):
            await client.exec("true")


async def test_files_and_workdir_are_there_before_anything_runs(provider: LocalProvider) -> None:
    spec = SandboxSpec(
        workdir="/srv/deep/work",
        files=(FileInput(path="/srv/deep/run.sh", content=b"#!/bin/sh\npwd\n", mode=0o755),),
    )
    async with await provider.create(spec) as sandbox:
        assert (await sandbox.exec(["/srv/deep/run.sh"])).stdout == b"/srv/deep/work\n"


async def test_a_mount_is_shown_read_only(provider: LocalProvider, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/f").write_text("shown")
    spec = SandboxSpec(mounts=(Mount(source=str(tmp_path / "data"), target="/data"),))
    async with await provider.create(spec) as sandbox:
        assert (await sandbox.exec(["cat", "/data/f"])).stdout == b"shown"
        assert not (await sandbox.exec("echo x > /data/f || echo x > /data/g")).ok
    assert (tmp_path / "data/f").read_text() == "shown"


async def test_an_ordinary_user_inside_has_a_home_and_a_name(provider: LocalProvider) -> None:
    async with await provider.create(SandboxSpec(user="agent")) as sandbox:
        seen = await sandbox.exec("id -u; id -un; echo $HOME; touch ~/f /workspace/f && echo ok")
        assert seen.stdout == b"1000\nagent\n/home/agent\nok\n"
    async with await provider.create(SandboxSpec(user="4321:77")) as sandbox:
        assert (await sandbox.exec("id -u; id -g")).stdout == b"4321\n77\n"


async def test_closing_removes_the_directory_and_what_is_hard_to_remove(
    provider: LocalProvider, state: Path
) -> None:
    sandbox = await provider.create(SandboxSpec())
    await sandbox.exec("mkdir -p a/b && touch a/b/c && chmod 0 a/b a && ln -s /etc/passwd l && mkfifo p")
    deep = "import os\nfor _ in range(3000):\n    os.mkdir('d' * 20); os.chdir('d' * 20)"
    assert (await sandbox.exec(["python3", "-c", deep])).ok
    await sandbox.close()
    await sandbox.close()
    assert list(state.glob("drivers/*/boxes/*")) == []
    with pytest.raises(SandboxGone, match="was closed"):
        await sandbox.exec("true")
    assert not await sandbox.alive()


async def test_a_sandbox_whose_agent_is_killed_says_so(
    sandbox: AgentSandbox, pids_of: Callable[[str], list[int]]
) -> None:
    for pid in pids_of(sandbox.id):
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(SandboxGone, match="its agent was killed"):
        await _use_for_ever(sandbox)
    assert not await sandbox.alive()


async def _use_for_ever(sandbox: AgentSandbox) -> None:
    while True:
        await sandbox.exec("true")


async def test_the_agent_outlives_a_command_that_kills_all_it_can(sandbox: AgentSandbox) -> None:
    await sandbox.exec("kill -9 -1; kill -9 1; kill -TERM 1; kill -STOP 1")
    assert (await sandbox.exec("echo on")).stdout == b"on\n"
