"""What the provider has: of its own telling, or of this machine."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from orchard_core import SandboxProvider


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceSummary:
    """What there is, and what is taken."""

    nodes: int
    """Machines."""
    cpu_total: float
    """Cores."""
    cpu_used: float
    """Cores that are asked for, or busy."""
    memory_total: int
    """Bytes."""
    memory_used: int
    """Bytes that are asked for, or in use."""


@runtime_checkable
class TellsResources(Protocol):
    """A provider that knows better than this machine does."""

    async def resources(self) -> ResourceSummary:
        """What it has. Raises SandboxUnavailable."""


async def summary(provider: SandboxProvider) -> ResourceSummary:
    """Of the provider, else of this machine."""
    if isinstance(provider, TellsResources):
        return await provider.resources()
    return _machine()


def _machine() -> ResourceSummary:
    memory = _meminfo()
    total = memory.get("MemTotal", 0)
    cores = len(os.sched_getaffinity(0))
    return ResourceSummary(
        nodes=1,
        cpu_total=float(cores),
        cpu_used=min(float(cores), os.getloadavg()[0]),
        memory_total=total,
        memory_used=max(0, total - memory.get("MemAvailable", 0)),
    )


def _meminfo() -> dict[str, int]:
    """/proc/meminfo in bytes."""
    found = {}
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, _, value = line.partition(":")
        digits = value.strip().removesuffix(" kB")
        if digits.isdigit():
            found[name] = int(digits) << 10
    return found
