"""Where the compiled agent is."""

from __future__ import annotations

import platform
from pathlib import Path

from orchard_core.errors import SandboxUnavailable

_MACHINES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


def agent_binary(machine: str | None = None) -> Path:
    """The static agent for `machine` (as `uname -m` or Go names it; this one by default).

    Raises SandboxUnavailable when the package was installed without it.
    """
    machine = machine or platform.machine()
    architecture = _MACHINES.get(machine.lower())
    if architecture is None:
        raise SandboxUnavailable(f"there is no agent for {machine}", hint="x86_64 and aarch64 are served")
    path = Path(__file__).parent / "bin" / f"orchard-agent-linux-{architecture}"
    if not path.is_file():
        raise SandboxUnavailable(
            f"the agent for {machine} is missing from this installation",
            hint="reinstall orchard-core from a wheel, or run `pip install -e .` in a checkout to build it",
        )
    return path
