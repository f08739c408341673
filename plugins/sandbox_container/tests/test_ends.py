"""How a container ends, and what its caller is told."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from orchard_sandbox_container.config import ContainerConfig
from orchard_sandbox_container.provider import ContainerProvider

from orchard_core import (
    Sandbox,
    SandboxError,
    SandboxGone,
    SandboxOutOfMemory,
    SandboxSpec,
    SandboxUnavailable,
)

if TYPE_CHECKING:
    from .conftest import Podman

PATIENCE_S = 60.0


def spec(**fields: Any) -> SandboxSpec:
    return SandboxSpec.model_validate({"image": "oci:busybox", **fields})


def pid_of(podman: Podman, sandbox: Sandbox) -> int:
    (found,) = json.loads(podman.run("inspect", f"orchard-{sandbox.id}"))
    return int(found["State"]["Pid"])


async def end_of(sandbox: Sandbox) -> SandboxGone:
    """The error that calls end with."""
    while True:
        try:
            await sandbox.exec("sleep 0.1", timeout=PATIENCE_S)
        except SandboxGone as gone:
            return gone
        except SandboxError:
            continue


async def test_a_killed_agent_is_told_and_its_neighbour_lives(
    podman: Podman, provider: ContainerProvider
) -> None:
    async with await provider.create(spec()) as one, await provider.create(spec()) as two:
        os.kill(pid_of(podman, one), signal.SIGKILL)
        gone = await end_of(one)
        assert "its agent was killed or failed (exit 137)" in gone.message
        assert not await one.alive()
        assert [found.id for found in await provider.standing()] == [two.id]
        assert (await two.exec("echo on")).stdout == b"on\n"


async def test_memory_that_costs_the_agent_its_life_is_told_as_such(provider: ContainerProvider) -> None:
    async with await provider.create(spec(memory_mb=96)) as one, await provider.create(spec()) as two:
        # The kernel shall take the agent first: root inside may ask for that, for nobody else's life.
        await one.start("echo 1000 > /proc/1/oom_score_adj; dd if=/dev/zero of=/dev/null bs=512M")
        gone = await end_of(one)
        assert isinstance(gone, SandboxOutOfMemory)
        assert gone.by == "agent"
        assert (await two.exec("echo on")).stdout == b"on\n"


async def test_a_container_removed_by_somebody_else_is_told(
    podman: Podman, provider: ContainerProvider
) -> None:
    sandbox = await provider.create(spec())
    podman.run("rm", "--force", "--time", "0", f"orchard-{sandbox.id}")
    gone = await end_of(sandbox)
    assert gone.by == "infrastructure"
    await sandbox.close()
    await sandbox.close()


async def test_files_that_outgrow_the_limit_end_their_sandbox(provider: ContainerProvider) -> None:
    async with await provider.create(spec(disk_mb=8)) as one, await provider.create(spec()) as two:
        await one.start("for n in 1 2 3 4; do dd if=/dev/urandom of=big$n bs=1000000 count=4; done")
        gone = await end_of(one)
        assert gone.by == "agent"
        assert "more than 8 MiB" in gone.message
        assert (await two.exec("echo on")).stdout == b"on\n"


async def test_a_dead_engine_costs_no_running_sandbox(podman: Podman, tmp_path: Path) -> None:
    provider = ContainerProvider(ContainerConfig(engine=podman.at("other"), state_dir=str(tmp_path)))
    with podman.serving("other") as service:
        sandbox = await provider.create(spec())
        service.kill()
        service.wait()
    assert (await sandbox.exec("echo lives on")).stdout == b"lives on\n"
    with pytest.raises(SandboxUnavailable, match="cannot be reached"):
        await provider.create(spec())
    with pytest.raises(SandboxUnavailable):
        await provider.standing()
    with podman.serving("other"):
        async with await provider.create(spec()) as another:
            assert (await another.exec("echo again")).stdout == b"again\n"
        await sandbox.close()
        assert await provider.standing() == []
        await provider.close()


async def test_a_sandbox_that_dies_while_the_engine_is_dead_is_told(podman: Podman, tmp_path: Path) -> None:
    provider = ContainerProvider(ContainerConfig(engine=podman.at("other"), state_dir=str(tmp_path)))
    with podman.serving("other") as service:
        sandbox = await provider.create(spec())
        pid = pid_of(podman, sandbox)
        service.kill()
        service.wait()
    os.kill(pid, signal.SIGKILL)
    assert (await end_of(sandbox)).by == "infrastructure"
    with podman.serving("other"):
        await provider.close()
