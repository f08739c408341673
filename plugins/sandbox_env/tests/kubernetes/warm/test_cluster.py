"""Pools on a real cluster: real pods, real agents, real processes that claim at once."""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from orchard_env.kubernetes import labels
from orchard_env.kubernetes.config import KubernetesConfig
from orchard_env.kubernetes.provider import KubernetesProvider, open_kubernetes
from orchard_env.kubernetes.resources import PODS
from orchard_env.kubernetes.tokens import derive_token
from orchard_env.kubernetes.warm.config import PoolConfig

from orchard_core import AgentClient, AgentRefused, Network, NetworkMode, SandboxSpec

from ..conftest import IMAGE

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

GENEROUS_S = 120.0
CLAIMER = Path(__file__).with_name("claimer.py")


@asynccontextmanager
async def filled(
    config: KubernetesConfig, spec: SandboxSpec, count: int
) -> AsyncIterator[KubernetesProvider]:
    """A driver whose pool has so many pods ready, and is not filled again."""
    pool = PoolConfig(name="small", image=IMAGE, cpu=spec.cpu, memory_mb=spec.memory_mb, target=count)
    provider = open_kubernetes(config.model_copy(update={"pools": (pool,)}))
    leads = True
    try:
        await provider.keep_pools(lambda: leads)
        async with asyncio.timeout(GENEROUS_S):
            while provider.pools()[0].ready < count:
                await asyncio.sleep(0.05)
        leads = False
        yield provider
    finally:
        await provider.close()


async def test_a_claimed_sandbox_has_all_of_its_spec_and_a_token_that_is_new(
    config: KubernetesConfig, spec: SandboxSpec
) -> None:
    asked = spec.model_copy(
        update={"env": {"GIVEN": "a $HOME b\nc"}, "network": Network(mode=NetworkMode.OPEN), "ttl_s": 500.0}
    )
    async with filled(config, spec, 1) as provider:
        session = await provider.session()
        (pod,) = list(session.pods)
        assert labels.is_waiting(pod)
        async with await provider.create(asked) as sandbox:
            assert provider.pools()[0].hits == 1
            assert (await sandbox.exec('echo "$GIVEN"')).text == "a $HOME b\nc\n"
            assert "://" in (await sandbox.exec("echo $https_proxy")).text
            assert (await sandbox.exec("pwd")).text == "/workspace\n"
            given = await sandbox.endpoint()
            old = replace(given, token=derive_token(session.seed, pod.name, pod.uid))
            async with AgentClient(old) as stranger:
                with pytest.raises(AgentRefused):
                    await stranger.health()
            other = open_kubernetes(config)
            adopted = await other.adopt(sandbox.id)
            assert (adopted.id, adopted.spec) == (sandbox.id, sandbox.spec)
            await adopted.reset_processes()
            assert (await adopted.exec('test -n "$GIVEN"')).ok
            await other.close()
            # Whoever ends it, the used pod goes.
            found = await session.api.get(PODS, pod.name)
            assert found is None or "deletionTimestamp" in found["metadata"]


async def test_two_processes_that_claim_at_once_never_get_one_pod(
    config: KubernetesConfig, spec: SandboxSpec
) -> None:
    async with filled(config, spec, 4) as provider, AsyncExitStack() as stack:
        theirs = (await provider.session()).config
        both = [await stack.enter_async_context(claimer(theirs, spec, 3)) for _ in range(2)]
        assert [(await told(one))["ready"] for one in both] == [4, 4]
        for one in both:
            go(one)
        got = [await told(one) for one in both]
        hosts = [host for one in got for host in one["hosts"]]
        assert len({*hosts}) == 6
        taken = [host for host in hosts if host.startswith("pool-small-")]
        assert len(taken) == sum(one["hits"] for one in got)
        assert 0 < len(taken) <= 4
        for one in both:
            go(one)


@asynccontextmanager
async def claimer(config: KubernetesConfig, spec: SandboxSpec, count: int) -> AsyncIterator[Process]:
    words = (str(CLAIMER), config.model_dump_json(), spec.model_dump_json(), str(count))
    process = await asyncio.create_subprocess_exec(sys.executable, *words, stdin=PIPE, stdout=PIPE)
    try:
        yield process
        async with asyncio.timeout(GENEROUS_S):
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def told(process: Process) -> dict[str, Any]:
    assert process.stdout is not None
    async with asyncio.timeout(GENEROUS_S):
        found: dict[str, Any] = json.loads(await process.stdout.readline())
    return found


def go(process: Process) -> None:
    assert process.stdin is not None
    process.stdin.write(b"\n")
