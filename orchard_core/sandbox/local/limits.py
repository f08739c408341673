"""Which limit of a spec is held by what, and the refusal of those that nothing holds."""

from __future__ import annotations

import os
import platform
import resource
from collections.abc import Mapping
from dataclasses import dataclass, field

from orchard_core.errors import SandboxUnsupported
from orchard_core.sandbox.local.config import LocalConfig
from orchard_core.types.sandbox import SandboxSpec

_MIB = 1 << 20
_SMALLEST_MEMORY_MB = 48
"""Below this the agent itself could not live under an rlimit."""
_SMALLEST_CPU = 0.01
"""The kernel gives no smaller share of its period."""
_LARGEST = {"memory": 1 << 40, "cpu": 10_000, "pids": 1 << 22, "disk": 1 << 40}
"""The kernel wraps or refuses numbers not far beyond: a memory limit of 2**64 bytes would be one of 0."""
_NOFILE = 65536
_MENDS = {
    "memory": "leave memory_mb out",
    "cpu": "leave cpu out",
    "pids": "leave pids out",
    "disk": "leave disk_mb out",
}
_DELEGATE = (
    "give this process a cgroup of its own (`systemd-run --user --scope -p Delegate=yes ...`, or run as "
    "root), or "
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitPlan:
    """One sandbox's limits by their enforcer."""

    cgroup: Mapping[str, float] = field(default_factory=dict)
    """memory in bytes, cpu in cores, pids as a count."""
    rlimits: Mapping[int, int] = field(default_factory=dict)
    """Resource number -> soft and hard value."""
    disk_bytes: int | None = None
    """Size of the writable layers at which the sandbox is destroyed."""


def enforcers(cgroup_limits: Mapping[str, str]) -> dict[str, str]:
    """What enforces each limit on this host.

    Without cgroups, memory falls back on RLIMIT_DATA, which holds for each process alone, and pids on
    RLIMIT_NPROC, which counts per user namespace since Linux 5.14 but never binds host root. disk is
    measured: RLIMIT_FSIZE stops a file that outgrows the limit at once, the sum of all files is looked at
    every few seconds. cpu has no fallback.
    """
    found = {"memory": "rlimit", "disk": "measured"}
    if os.geteuid() != 0 and _kernel() >= (5, 14):
        found["pids"] = "rlimit"
    return found | dict(cgroup_limits)


def plan_limits(spec: SandboxSpec, config: LocalConfig, by: Mapping[str, str]) -> LimitPlan:
    """Divide the spec's limits among their enforcers. Raises SandboxUnsupported for one that has none."""
    asked = {"memory": spec.memory_mb, "cpu": spec.cpu, "pids": spec.pids, "disk": spec.disk_mb}
    given = {name: value for name, value in asked.items() if value is not None}
    _check(given, by)
    wanted = {name: float(value) for name, value in given.items()}
    if "memory" not in wanted and config.default_memory_mb is not None:
        wanted["memory"] = config.default_memory_mb
    if "pids" not in wanted and config.default_pids is not None and "pids" in by:
        wanted["pids"] = config.default_pids
    amounts = {name: value * _MIB if name in {"memory", "disk"} else value for name, value in wanted.items()}
    rlimits = {resource.RLIMIT_CORE: 0, resource.RLIMIT_NOFILE: _NOFILE}
    if by.get("memory") == "rlimit" and "memory" in amounts:
        rlimits[resource.RLIMIT_DATA] = int(amounts["memory"])
    if by.get("pids") == "rlimit" and "pids" in amounts:
        rlimits[resource.RLIMIT_NPROC] = int(amounts["pids"])
    if "disk" in amounts:
        rlimits[resource.RLIMIT_FSIZE] = int(amounts["disk"])
    return LimitPlan(
        cgroup={name: value for name, value in amounts.items() if by[name].startswith("cgroup")},
        rlimits=rlimits,
        disk_bytes=int(amounts["disk"]) if "disk" in amounts else None,
    )


def _check(wanted: Mapping[str, float], by: Mapping[str, str]) -> None:
    for name, value in wanted.items():
        if not 0 < value <= _LARGEST[name] or (name == "cpu" and value < _SMALLEST_CPU):
            raise SandboxUnsupported(
                f"a {name} limit of {str(value)[:40]} makes no sandbox",
                hint=f"give at most {_LARGEST[name]}, or {_MENDS[name]}",
            )
        if name not in by:
            raise SandboxUnsupported(
                f"nothing on this host can hold a sandbox to its {name} limit", hint=_DELEGATE + _MENDS[name]
            )
    if "memory" in wanted and wanted["memory"] < _SMALLEST_MEMORY_MB:
        raise SandboxUnsupported(
            f"memory_mb={wanted['memory']:g} is less than a sandbox needs",
            hint=f"give at least {_SMALLEST_MEMORY_MB}",
        )


def apply_rlimits(pid: int, plan: LimitPlan) -> None:
    """Set them on a process that has not started its program yet; its children inherit them."""
    for number, value in plan.rlimits.items():
        _, hard = resource.prlimit(pid, number)
        bounded = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.prlimit(pid, number, (bounded, bounded))


def _kernel() -> tuple[int, ...]:
    parts = platform.release().split(".")[:2]
    return tuple(int(part) if part.isdigit() else 0 for part in parts)
