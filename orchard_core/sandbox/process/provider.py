"""The process provider: commands run on this machine as they are, as the driver's own user.

For trusted commands only, and only when it is asked for by name. Paths are the host's own. `/workspace`,
which cannot be made here, stands for a fresh directory: commands run in it, and `sandbox.spec.workdir`
tells where it is. Any other working directory must exist. The network is the host's, also for a spec that
leaves `none` as it is.
"""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path

from orchard_core.errors import SandboxUnavailable, SandboxUnsupported
from orchard_core.sandbox.agent_sandbox import AgentSandbox
from orchard_core.sandbox.furnish import check_spec, furnish
from orchard_core.sandbox.lifetime import watch_lifetime
from orchard_core.sandbox.local.reaper import reap
from orchard_core.sandbox.local.removal import remove_tree
from orchard_core.sandbox.local.state import DriverState, candidate_roots, register_driver
from orchard_core.sandbox.process.config import ProcessConfig
from orchard_core.sandbox.process.place import ProcessPlace
from orchard_core.types.sandbox import Capabilities, NetworkMode, SandboxSpec, Snapshot

_DEFAULT_WORKDIR = "/workspace"
_CAPABILITIES = Capabilities(
    images=frozenset({"host"}),
    networks=frozenset({NetworkMode.HOST}),
    isolated=False,
    private_paths=False,
)


class ProcessProvider:
    """Implements SandboxProvider."""

    def __init__(self, config: ProcessConfig | None = None) -> None:
        self._config = config or ProcessConfig()
        self._sandboxes: dict[str, AgentSandbox] = {}
        self._state: DriverState | None = None

    @property
    def name(self) -> str:
        """See SandboxProvider."""
        return "process"

    async def capabilities(self) -> Capabilities:
        """See SandboxProvider."""
        return _CAPABILITIES

    async def create(self, spec: SandboxSpec, *, restore: Snapshot | None = None) -> AgentSandbox:
        """See SandboxProvider. The sandbox's own spec names the directory that /workspace stands for."""
        _check(spec, restore)
        if self._state is None:
            self._state = await asyncio.to_thread(_register, self._config.state_dir)
        sandbox_id = f"process-{secrets.token_hex(6)}"
        place = ProcessPlace(
            sandbox_id=sandbox_id,
            workdir=None if spec.workdir == _DEFAULT_WORKDIR else spec.workdir,
            env=spec.env,
            path=self._state.box(sandbox_id),
            timeout_s=self._config.create_timeout_s,
            on_destroyed=lambda: self._forget(sandbox_id),
        )
        try:
            client = await place.open()
        except BaseException:
            await asyncio.shield(place.destroy())
            raise
        sandbox = AgentSandbox(
            sandbox_id=sandbox_id,
            spec=spec.model_copy(update={"workdir": place.workdir}),
            capabilities=_CAPABILITIES,
            place=place,
            client=client,
        )
        try:
            await furnish(sandbox)
        except BaseException:
            await sandbox.close()
            raise
        self._sandboxes[sandbox_id] = sandbox
        place.watch(asyncio.create_task(watch_lifetime(sandbox)))
        return sandbox

    def _forget(self, sandbox_id: str) -> None:
        self._sandboxes.pop(sandbox_id, None)

    async def close(self) -> None:
        """See SandboxProvider."""
        await asyncio.gather(*(sandbox.close() for sandbox in list(self._sandboxes.values())))
        if self._state is not None:
            await asyncio.to_thread(remove_tree, self._state.path)
            self._state.release()
            self._state = None


def _register(state_dir: str | None) -> DriverState:
    """Clean up after dead drivers, and take a lease in the first usable place. Raises SandboxUnavailable."""
    reap(state_dir)
    refused: SandboxUnavailable | None = None
    for root in candidate_roots(state_dir):
        try:
            return register_driver(root)
        except SandboxUnavailable as error:
            refused = refused or error
    raise refused or SandboxUnavailable("there is no place for the sandboxes' files")


def _check(spec: SandboxSpec, restore: Snapshot | None) -> None:
    """Refuse what cannot be had. Raises SandboxUnsupported."""
    check_spec(spec)
    asked = {
        "snapshots": restore is not None,
        f"image {spec.image}": spec.image.kind != "host",
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
