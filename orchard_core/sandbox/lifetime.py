"""The two clocks of a sandbox: its whole life, and the time nobody has used it."""

from __future__ import annotations

import asyncio
import time

from orchard_core.errors import SandboxError
from orchard_core.sandbox.agent_sandbox import AgentSandbox

_SHORTEST_PAUSE_S = 0.02


async def watch_lifetime(sandbox: AgentSandbox) -> None:
    """End the sandbox when its TTL has passed, or its idle TTL without a call, a running command, or a
    request by another program that holds an endpoint of it."""
    spec = sandbox.spec
    deadline = time.monotonic() + spec.ttl_s
    idle_ttl = spec.ttl_s if spec.idle_ttl_s is None else spec.idle_ttl_s
    seen = 0
    while (left := deadline - time.monotonic()) > 0:
        quiet = idle_ttl - sandbox.idle_s
        if quiet <= 0 and spec.idle_ttl_s is not None:
            busy, requests = await _use_by_others(sandbox)
            if not busy and requests <= seen + 1:
                await sandbox.end(
                    f"sandbox {sandbox.id} was destroyed: unused for its idle TTL of {idle_ttl:g} s"
                )
                return
            seen, quiet = requests, idle_ttl
        await asyncio.sleep(max(_SHORTEST_PAUSE_S, min(left, quiet)))
    await sandbox.end(f"sandbox {sandbox.id} was destroyed: its TTL of {spec.ttl_s:g} s has passed")


async def _use_by_others(sandbox: AgentSandbox) -> tuple[bool, int]:
    """Whether a command runs, and how many requests the agent has had; an agent that is gone has neither."""
    try:
        metrics = await sandbox.metrics()
    except SandboxError:
        return False, 0
    return metrics.execs_running > 0, metrics.requests_total
