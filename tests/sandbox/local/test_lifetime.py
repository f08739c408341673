"""TTL and idle TTL: what ends a sandbox, what keeps it, and what its users are told."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from orchard_core.errors import SandboxGone
from orchard_core.sandbox.agent import AgentClient
from orchard_core.sandbox.agent_sandbox import AgentSandbox
from orchard_core.sandbox.local.provider import LocalProvider
from orchard_core.types.sandbox import SandboxSpec


async def _dies(sandbox: AgentSandbox) -> None:
    async with asyncio.timeout(30):
        while await sandbox.alive():
            await asyncio.sleep(0.05)


async def test_the_ttl_ends_a_busy_sandbox_and_says_so(provider: LocalProvider) -> None:
    sandbox = await provider.create(SandboxSpec(ttl_s=0.5))
    with pytest.raises(SandboxGone, match=r"its TTL of 0\.5 s has passed"):
        await sandbox.exec("sleep 60")
    with pytest.raises(SandboxGone, match="its TTL"):
        await sandbox.read_bytes("/etc/passwd")


async def test_an_unused_sandbox_ends_and_says_so(provider: LocalProvider) -> None:
    sandbox = await provider.create(SandboxSpec(idle_ttl_s=0.4))
    await _dies(sandbox)
    with pytest.raises(SandboxGone, match=r"unused for its idle TTL of 0\.4 s"):
        await sandbox.exec("true")


async def _long_exec(sandbox: AgentSandbox) -> None:
    assert (await sandbox.exec("sleep 1.5; echo done")).stdout == b"done\n"


async def _started_alone(sandbox: AgentSandbox) -> None:
    process = await sandbox.start("sleep 1.5; echo done")
    await asyncio.sleep(1.2)
    assert (await process.wait(30)).stdout == b"done\n"


async def _other_program(sandbox: AgentSandbox) -> None:
    async with AgentClient(await sandbox.endpoint()) as client:
        for _ in range(12):
            await client.exec("true")
            await asyncio.sleep(0.12)


@pytest.mark.parametrize("use", [_long_exec, _started_alone, _other_program])
async def test_use_of_any_kind_keeps_it(
    provider: LocalProvider, use: Callable[[AgentSandbox], Awaitable[None]]
) -> None:
    async with await provider.create(SandboxSpec(idle_ttl_s=0.5)) as sandbox:
        await use(sandbox)
        assert await sandbox.alive()
