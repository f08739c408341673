"""The two clocks of a sandbox: its whole life, and the time nobody has used it."""

from __future__ import annotations

import asyncio
import time

from orchard_core.errors import SandboxError
from orchard_core.sandbox.agent_sandbox import AgentSandbox

_SHORTEST_PAUSE_S = 0.02


async def watch_lifetime(sandbox: AgentSandbox, *, age_s: float = 0.0) -> None:
    """End the sandbox when its TTL has passed, or its idle TTL without a call, a running command, or a
    request by another program that holds an endpoint of it. `age_s` is how long it has stood already."""
    spec = sandbox.spec
    sandbox.deadline = time.monotonic() + spec.ttl_s - age_s
    seen = 0
    while (left := sandbox.deadline - time.monotonic()) > 0:
        pause = left
        if spec.idle_ttl_s is not None:
            pause = spec.idle_ttl_s - sandbox.idle_s
            busy, requests = await _use_by_others(sandbox)
            if pause <= 0 and not busy and requests == seen:
                await sandbox.end(f"{_destroyed(sandbox)} unused for its idle TTL of {spec.idle_ttl_s:g} s")
                return
            seen, pause = requests, pause if pause > 0 else spec.idle_ttl_s
        await asyncio.sleep(max(_SHORTEST_PAUSE_S, min(left, pause)))
    await sandbox.end(f"{_destroyed(sandbox)} its TTL of {spec.ttl_s:g} s has passed")


def _destroyed(sandbox: AgentSandbox) -> str:
    return f"sandbox {sandbox.id} was destroyed:"


async def _use_by_others(sandbox: AgentSandbox) -> tuple[bool, int]:
    """Whether a command runs, and how many requests the agent has had besides the driver's own probes; an
    agent that is gone has neither."""
    try:
        metrics = await sandbox.metrics()
    except SandboxError:
        return False, 0
    return metrics.execs_running > 0, metrics.requests_total - sandbox.probes
