"""What runs inside is hostile, and root."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from orchard_sandbox_container.provider import ContainerProvider

from orchard_core import Sandbox, SandboxSpec

PATIENCE_S = 120.0


@pytest_asyncio.fixture
async def sandbox(provider: ContainerProvider) -> AsyncIterator[Sandbox]:
    async with await provider.create(spec()) as made:
        yield made


def spec(**fields: Any) -> SandboxSpec:
    return SandboxSpec.model_validate({"image": "oci:busybox", **fields})


def token_of(state: Path) -> str:
    (path,) = state.glob("containers/boxes/*/token")
    return path.read_text()


async def test_the_token_is_nowhere_inside(sandbox: Sandbox, tmp_path: Path) -> None:
    token = token_of(tmp_path)
    look = "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline /proc/self/mountinfo; grep -r '' /.orchard/run /tmp"
    seen = await sandbox.exec(f"{look} /run; head -c 1 /proc/1/mem; ls /proc/1/fd", timeout=PATIENCE_S)
    assert token.encode() not in seen.stdout + seen.stderr
    assert (await sandbox.exec("cat /.orchard/run/token")).exit_code != 0


async def test_the_agents_socket_has_no_name_inside(sandbox: Sandbox) -> None:
    """Who could put another in its place would be spoken to instead of the agent, with the token."""
    run = "/.orchard/run"
    assert (await sandbox.exec(f"find / -xdev -type s; find {run} -type s; ls -A {run}")).stdout == b""
    for attempt in (f"touch {run}/x", f"ln -s /etc/passwd {run}/agent.sock", f"mkdir {run}/y"):
        assert not (await sandbox.exec(attempt)).ok
    assert not (await sandbox.exec("mount -t tmpfs none /.orchard/run || umount /.orchard/run")).ok
    assert (await sandbox.exec("rm -rf /.orchard; echo on")).stdout == b"on\n"
    assert await sandbox.alive()


async def test_the_agents_binary_cannot_be_changed(sandbox: Sandbox, tmp_path: Path) -> None:
    for attempt in ("echo x > /.orchard/agent", "chmod 777 /.orchard/agent", "mv /.orchard/agent /tmp/agent"):
        assert not (await sandbox.exec(attempt)).ok
    (agent,) = tmp_path.glob("containers/agent-*")
    assert agent.stat().st_mode & 0o777 == 0o755


async def test_no_signal_from_inside_ends_the_agent(sandbox: Sandbox) -> None:
    await sandbox.exec("for n in $(seq 1 64); do kill -$n 1; done; kill -9 -1", timeout=PATIENCE_S)
    assert await sandbox.alive()
    assert (await sandbox.exec("echo on")).stdout == b"on\n"


async def test_root_inside_can_do_nothing_to_the_host(sandbox: Sandbox) -> None:
    for attempt in (
        "mount -t tmpfs none /mnt || mount -t tmpfs none /tmp",
        "mknod /tmp/disk b 8 0 && head -c 1 /tmp/disk",
        "echo 1 > /proc/sys/kernel/panic",
        "hostname other",
        "dmesg -c",
        "ip link add dummy0 type dummy",
        "chroot /proc/1/root true",
    ):
        assert not (await sandbox.exec(attempt, timeout=PATIENCE_S)).ok, attempt


async def test_a_fork_bomb_stays_inside(provider: ContainerProvider) -> None:
    async with await provider.create(spec(pids=64)) as one, await provider.create(spec()) as two:
        bomb = await one.start("b() { b | b & }; b; while :; do sh -c 'sleep 100 &'; done")
        assert (await two.exec("echo on", timeout=PATIENCE_S)).stdout == b"on\n"
        await one.reset_processes()
        assert (await one.exec("echo calm")).stdout == b"calm\n"
        del bomb


@pytest.mark.slow
async def test_ten_gigabytes_of_output_are_counted_and_not_kept(provider: ContainerProvider) -> None:
    async with await provider.create(spec(memory_mb=256)) as one, await provider.create(spec()) as two:
        command = "dd if=/dev/zero bs=1M count=10240 2>/dev/null"
        flood = asyncio.create_task(one.exec(command, timeout=PATIENCE_S))
        while not flood.done():
            assert (await two.exec("echo on", timeout=PATIENCE_S)).stdout == b"on\n"
            await asyncio.sleep(0.5)
        result = await flood
        assert result.timed_out or result.stdout_size == 10 << 30
        assert result.stdout_truncated
        assert len(result.stdout) < 64 << 20
        assert await one.alive()
