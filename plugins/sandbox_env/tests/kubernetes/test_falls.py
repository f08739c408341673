"""A sandbox whose cluster says that it has ended, while calls of it stand in every stage."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from orchard_env.kubernetes.config import KubernetesConfig
from orchard_env.kubernetes.provider import open_kubernetes

from orchard_core import ImageRef, SandboxOutOfMemory, SandboxSpec

from ..faults.gate import Stop
from ..faults.paper import GENEROUS_S, Paper, paper_cluster

ENDED = {
    "name": "sandbox",
    "restartCount": 0,
    "state": {"terminated": {"reason": "OOMKilled", "exitCode": 137}},
}


async def test_a_fall_ends_every_call_also_beside_one_that_asks_why_it_lost_its_way(tmp_path: Path) -> None:
    broke: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: broke.append(told))
    with paper_cluster(tmp_path) as paper:
        config = KubernetesConfig(kubeconfig=str(paper.kubeconfig), agent_port=paper.agent_port, reap=False)
        provider = open_kubernetes(config)
        sandbox = await provider.create(SandboxSpec(image=ImageRef(kind="oci", value="any"), name="box"))
        running = asyncio.create_task(sandbox.exec("touch runs; sleep 600"))
        while not (paper.work("box") / "runs").exists():
            await asyncio.sleep(0.02)
        asks = await asyncio.to_thread(paper.stop, "/v1/health", at_agent="box")
        lost = asyncio.create_task(_lose_its_way(paper, sandbox.write("/workspace/lost", _once())))
        assert await asyncio.to_thread(asks.reached.wait, GENEROUS_S)
        await asyncio.to_thread(lambda: paper.says("box", phase="Failed", containerStatuses=[ENDED]))
        for call in (running, lost):
            with pytest.raises(SandboxOutOfMemory):
                await asyncio.wait_for(call, GENEROUS_S)
        await provider.close()
    gc.collect()
    assert not broke


async def _lose_its_way(paper: Paper, call: Any) -> None:
    """Make a call that is not sent again, and breaks."""

    def arm() -> list[Stop]:
        return [paper.stop("lost", at_agent="box") for _ in range(2)]

    for stop in await asyncio.to_thread(arm):
        paper.go_on(stop, deliver=False)
    await call


async def _once() -> AsyncIterator[bytes]:
    """What cannot be sent again."""
    yield b"x"
