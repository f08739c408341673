"""What a service's metrics tell of pods on a real cluster: phases of creation, pool hits, reasons."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest
from orchard_env.kubernetes.config import KubernetesConfig
from orchard_env.kubernetes.provider import open_kubernetes
from orchard_env.kubernetes.warm.config import PoolConfig
from orchard_env.service.assembly import assembled
from orchard_env.service.fleet import Fleet
from orchard_env.service.settings import ServiceSettings

from orchard_core import ImageRef, OrchardError, SandboxSpec

from ..service.observe.samples import Samples
from .conftest import IMAGE

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

GENEROUS_S = 120.0


async def test_phases_pool_hits_and_reasons_of_real_pods_are_told(
    config: KubernetesConfig, spec: SandboxSpec
) -> None:
    pool = PoolConfig(name="told", image=IMAGE, cpu=spec.cpu, memory_mb=spec.memory_mb, target=1)
    async with AsyncExitStack() as stack:
        provider = open_kubernetes(config.model_copy(update={"pools": (pool,)}))
        stack.push_async_callback(provider.close)
        async with assembled(provider, ServiceSettings()) as services:
            async with asyncio.timeout(GENEROUS_S):
                while not any(pool.ready for pool in provider.pools()):
                    await asyncio.sleep(0.05)
            await _use(services.fleet, spec)
            found = Samples(services.meters.exposition().decode())
    assert found("creates_total", tenant="alice", outcome="ready") == 2
    assert found("pool_claims_total", result="hit") == 1
    for phase in ("queued", "placed", "scheduled", "pulled", "answered", "furnished"):
        assert found("create_phase_seconds_count", phase=phase) >= 1, phase
    assert found("failures_total", stage="create", reason="ImagePullFailed", attribution="user") == 1
    assert found("requested_cpu_seconds_total", tenant="alice") > 0
    assert found("cost_usd_total", tenant="alice") > 0


async def _use(fleet: Fleet, spec: SandboxSpec) -> None:
    """One that a pool has, one that none has, and one whose image is nowhere."""
    others = spec.model_copy(update={"memory_mb": (spec.memory_mb or 64) + 1})
    never = spec.model_copy(update={"image": ImageRef(kind="oci", value="registry.invalid/none:1")})
    for wanted in (spec, others):
        entry = await fleet.create(wanted, tenant="alice")
        await entry.ready(GENEROUS_S)
        await fleet.delete(entry)
    entry = await fleet.create(never, tenant="alice")
    with pytest.raises(OrchardError):
        await entry.ready(GENEROUS_S)
