"""Harbor's environments from a service: `orchard_env.adapters.harbor:OrchardEnvironment`."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities, EnvironmentResourceCapabilities
from harbor.environments.definition import (
    COMPOSE_FILE_NAME,
    DOCKERFILE_NAME,
    parse_dockerfile_workdir,
    should_use_prebuilt_docker_image,
)

from orchard_core import (
    ConfigError,
    ExecError,
    Network,
    NetworkMode,
    Sandbox,
    SandboxSpec,
    UserUnknown,
    unbroken,
)
from orchard_core import ExecResult as Ended
from orchard_env.adapters.wanted import enforced, image_of, provider_for
from orchard_env.remote.provider import RemoteProvider

_BASH_OR_SH = 'if command -v bash >/dev/null 2>&1; then exec bash -c "$0"; fi; exec sh -c "$0"'
_MODES = {"no-network": "none", "allowlist": "allow-list", "public": "open"}


class OrchardEnvironment(BaseEnvironment):
    """One sandbox of the service that SANDBOX_BASE_URL names. The task names its image in `docker_image`."""

    def __init__(self, *args: Any, ttl_s: float = 24 * 3600.0, heartbeat: bool = True, **kwargs: Any) -> None:
        """`ttl_s` (seconds) ends the sandbox whatever happens. Without `heartbeat` it outlives this process
        until then, which keeping it (`delete: false`) needs."""
        super().__init__(*args, **kwargs)
        self._ttl_s = ttl_s
        self._heartbeat = heartbeat
        self._provider: RemoteProvider | None = None
        self._sandbox: Sandbox | None = None

    @staticmethod
    def type() -> str:
        """See Harbor."""
        return "orchard"

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        """See Harbor; what the service's own provider lacks of it is refused at the start."""
        return EnvironmentCapabilities(
            disable_internet=True,
            network_allowlist=True,
            network_allowlist_hostnames=True,
            network_allowlist_wildcard_hostnames=True,
        )

    @classmethod
    def resource_capabilities(cls) -> EnvironmentResourceCapabilities:
        """See Harbor."""
        return EnvironmentResourceCapabilities(cpu_limit=True, memory_limit=True, fractional_cpus=True)

    def _validate_definition(self) -> None:
        if (self.environment_dir / COMPOSE_FILE_NAME).exists():
            raise ConfigError(
                f"{self.environment_dir / COMPOSE_FILE_NAME} asks for several services, and a sandbox is one",
                hint="run this task with --env docker",
            )
        self._image(force_build=False)

    def _image(self, *, force_build: bool) -> str:
        named: str | None = self.task_env_config.docker_image
        if named and should_use_prebuilt_docker_image(
            self.environment_dir, docker_image=named, force_build=force_build
        ):
            return named
        raise ConfigError(
            f"a service of sandboxes builds no images, such as {self.environment_dir / DOCKERFILE_NAME}",
            hint="build and push it, name it as [environment].docker_image in task.toml, force no build",
        )

    async def start(self, force_build: bool) -> None:
        """See Harbor. Nothing is left behind when it is cancelled. Raises ConfigError, SandboxUnsupported,
        SandboxCreateFailed, SandboxUnavailable."""
        spec = self._spec(self._image(force_build=force_build))
        self._provider = provider_for("harbor", heartbeat=self._heartbeat)
        try:
            spec = enforced(spec, await self._provider.capabilities())
            self._sandbox = await self._provider.create(spec)
            await self.ensure_dirs(self._mount_targets(writable_only=True))
            await self._upload_environment_dir_after_start()
        except BaseException:
            await self.stop(delete=True)
            raise

    def _spec(self, image: str) -> SandboxSpec:
        policy, dockerfile = self.network_policy, self.environment_dir / DOCKERFILE_NAME
        mode = NetworkMode(_MODES[policy.network_mode.value])
        return SandboxSpec(
            image=image_of(image),
            cpu=self._effective_cpus,
            memory_mb=self._effective_memory_mb,
            disk_mb=self._effective_storage_mb,
            network=Network(mode=mode, allow=tuple(policy.allowed_hosts)),
            ttl_s=self._ttl_s,
            workdir=self.task_env_config.workdir or parse_dockerfile_workdir(dockerfile) or "/workspace",
        )

    async def stop(self, delete: bool) -> None:
        """See Harbor; repeated calls are fine."""
        provider, self._provider, self._sandbox = self._provider, None, None
        if provider is not None:
            await unbroken(provider.close() if delete else provider.release())

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        """See Harbor. A time-out is return code 124, with what was said until then; what keeps a command from
        starting is 126. Where nobody can become root, the sandbox's own user is. Raises SandboxGone."""
        try:
            how = {"cwd": cwd, "env": self._merge_env(env), "timeout": timeout_sec}
            ended = await self._ended(command, self._resolve_user(user), **how)
        except ExecError as error:
            return ExecResult(stdout="", stderr=str(error), return_code=126)
        said = f"\n[ended after {timeout_sec} s]" if ended.timed_out else ""
        code = 124 if ended.timed_out else ended.exit_code
        return ExecResult(stdout=ended.stdout_text, stderr=ended.stderr_text + said, return_code=code)

    async def _ended(self, command: str, user: str | int | None, **how: Any) -> Ended:
        argv, name = ["sh", "-c", _BASH_OR_SH, command], None if user is None else str(user)
        try:
            return await self._running().exec(argv, user=name, **how)
        except UserUnknown:
            if name not in ("root", "0"):
                raise
            return await self._running().exec(argv, **how)

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        """See Harbor: streamed, and the mode goes along."""
        source = Path(source_path)
        mode = stat.S_IMODE((await asyncio.to_thread(source.stat)).st_mode)
        await self._running().write(target_path, _pieces(source), mode=mode)

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        """See Harbor: one streamed archive."""
        await self._running().upload(Path(source_dir), target_dir)

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        """See Harbor: streamed, whole or not at all."""
        target = Path(target_path)
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f".{target.name}.part")
        try:
            with part.open("wb") as out:
                async for piece in self._running().read(source_path):
                    await asyncio.to_thread(out.write, piece)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        """See Harbor: one streamed archive, none of whose entries leaves the target."""
        await self._running().download(source_dir, Path(target_dir))

    def _running(self) -> Sandbox:
        if self._sandbox is None:
            raise ConfigError("no sandbox runs", hint="call start() first")
        return self._sandbox


async def _pieces(source: Path) -> AsyncIterator[bytes]:
    with source.open("rb") as content:
        while piece := await asyncio.to_thread(content.read, 1 << 20):
            yield piece
