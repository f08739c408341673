"""The process provider: commands run on this machine as they are, as the driver's own user.

For trusted commands only, and only when it is asked for by name. Paths are the host's own. `/workspace`,
which cannot be made here, stands for a fresh directory: commands run in it, and `sandbox.spec.workdir`
tells where it is. Any other working directory must exist. The network is the host's, also for a spec that
leaves `none` as it is.
"""

from __future__ import annotations

from pathlib import Path

from orchard_core.errors import SandboxUnsupported
from orchard_core.sandbox.agent_process import AgentProcess, AgentProcesses
from orchard_core.sandbox.agent_provider import AgentProvider
from orchard_core.sandbox.process.config import ProcessConfig
from orchard_core.types.sandbox import Capabilities, NetworkMode, SandboxSpec

_DEFAULT_WORKDIR = "/workspace"
_CAPABILITIES = Capabilities(
    images=frozenset({"host"}),
    networks=frozenset({NetworkMode.HOST}),
    isolated=False,
    private_paths=False,
)


def open_process(config: ProcessConfig | None = None) -> AgentProvider:
    """The provider. A sandbox's own spec names the directory that /workspace stands for."""
    config = config or ProcessConfig()
    able = _CAPABILITIES.model_copy(update={"pty": Path("/dev/ptmx").exists()})
    processes = AgentProcesses(state_dir=config.state_dir, timeout_s=config.create_timeout_s)
    return AgentProvider(name="process", capabilities=able, places=_Checked(processes))


class _Checked:
    """Refuses what the host as it is cannot give."""

    def __init__(self, processes: AgentProcesses) -> None:
        self._processes = processes

    async def place(self, sandbox_id: str, spec: SandboxSpec) -> AgentProcess:
        _check(spec)
        return await self._processes.place(sandbox_id, spec)

    async def close(self) -> None:
        await self._processes.close()


def _check(spec: SandboxSpec) -> None:
    """Refuse what cannot be had. Raises SandboxUnsupported."""
    asked = {
        "mounts": bool(spec.mounts),
        f"user {spec.user}": spec.user is not None,
        "network policies": spec.network.mode in {NetworkMode.ALLOW_LIST, NetworkMode.OPEN},
        "a memory limit": spec.memory_mb is not None,
        "a cpu limit": spec.cpu is not None,
        "a process limit": spec.pids is not None,
        "a disk limit": spec.disk_mb is not None,
        "files in a /workspace of its own": any(
            item.path.startswith(f"{_DEFAULT_WORKDIR}/") for item in spec.files
        ),
    }
    for what, wanted in asked.items():
        if wanted:
            raise SandboxUnsupported(
                f"the process provider cannot give {what}", hint="use the provider `local`"
            )
    if spec.workdir != _DEFAULT_WORKDIR and not Path(spec.workdir).is_dir():
        raise SandboxUnsupported(
            f"the process provider runs on the host itself, which has no directory {spec.workdir}",
            hint="leave workdir out for a fresh directory, or use the provider `local`",
        )
