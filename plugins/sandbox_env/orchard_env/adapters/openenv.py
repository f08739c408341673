"""OpenEnv's servers in a service's sandboxes: providers for its clients."""

from __future__ import annotations

import asyncio
import os
import time
import weakref
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
from openenv.core.containers.runtime.providers import ContainerProvider, RuntimeProvider

from orchard_core import ConfigError, OrchardError, Process, Sandbox, SandboxSpec
from orchard_env.adapters.wanted import image_of, provider_for
from orchard_env.client.loop import background_loop
from orchard_env.remote.provider import RemoteProvider

_PORT = 8000
_PAUSE_S = 0.1
_TAIL = 2000
_FROM_YAML = """
file=$(find . /app -maxdepth 4 -name openenv.yaml -print -quit 2>/dev/null)
app=$(sed -n 's/^app:[[:space:]]*//p' "$file" 2>/dev/null | tr -d "\\"'\\r")
if [ -z "$app" ]; then echo 'no openenv.yaml that names an app was found: give `command`' >&2; exit 2; fi
cd "$(dirname "$file")" && exec python3 -m uvicorn "$app" --host 127.0.0.1 --port "$PORT"
"""


class _Server:
    """A server in a sandbox, and the local port that leads to it."""

    def __init__(self) -> None:
        self._provider: RemoteProvider | None = None
        self._process: Process | None = None
        self._closing: weakref.finalize[..., _Server] | None = None

    def start(self, spec: SandboxSpec, command: str | None, port: int, project: Path | None = None) -> str:
        try:
            return background_loop().run(self._start(spec, command, port, project))
        except OrchardError as error:
            raise RuntimeError(str(error)) from error

    async def _start(self, spec: SandboxSpec, command: str | None, port: int, project: Path | None) -> str:
        if self._provider is not None:
            raise ConfigError(
                "a provider runs one server at a time", hint="stop it, or make another provider"
            )
        self._provider = provider_for("openenv")
        self._closing = weakref.finalize(self, _left_behind, self._provider, os.getpid())
        try:
            sandbox = await self._provider.create(spec)
            return await self._serve(sandbox, command, port, project)
        except BaseException:
            await self._stop()
            raise

    async def _serve(self, sandbox: Sandbox, command: str | None, port: int, project: Path | None) -> str:
        if project is not None:
            await sandbox.upload(project, sandbox.spec.workdir)
        argv = ["sh", "-c", command or _FROM_YAML]
        self._process = await sandbox.start(argv, env={**sandbox.spec.env, "PORT": str(port)})
        local = await sandbox.forward(port)
        return f"http://{local.host}:{local.port}"

    def ready(self, base_url: str, timeout_s: float) -> None:
        background_loop().run(self._ready(base_url, timeout_s))

    async def _ready(self, base_url: str, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5.0)) as http:
            while time.monotonic() < deadline:
                await self._fail_if_ended()
                with suppress(aiohttp.ClientError, TimeoutError):
                    async with http.get(f"{base_url}/health") as answer:
                        if answer.status == 200:
                            return
                await asyncio.sleep(_PAUSE_S)
        raise TimeoutError(f"the server at {base_url} was not ready within {timeout_s:g} s")

    async def _fail_if_ended(self) -> None:
        if self._process is None:
            raise RuntimeError("no server was started")
        with suppress(TimeoutError):
            ended = await self._process.wait(timeout=0.01)
            raise RuntimeError(f"the server ended with exit code {ended.exit_code}: {ended.text[-_TAIL:]}")

    def stop(self) -> None:
        background_loop().run(self._stop())

    async def _stop(self) -> None:
        provider, self._provider, self._process = self._provider, None, None
        if self._closing is not None:
            self._closing.detach()
        if provider is not None:
            await provider.close()


def _left_behind(provider: RemoteProvider, pid: int) -> None:
    """Nobody stopped it, and its object is collected or the process ends. A fork()ed child leaves it."""
    if pid == os.getpid():
        background_loop().run(provider.close())


class OrchardProvider(ContainerProvider):
    """One server in one sandbox of an image. The image's own command does not run: `command` does, or the app
    that an openenv.yaml in the image names."""

    def __init__(self, *, command: str | None = None, **fields: Any) -> None:
        """`fields` are of orchard_core.SandboxSpec: network, cpu, memory_mb, ..."""
        self._command = command
        self._fields = fields
        self._server = _Server()

    def start_container(
        self, image: str, port: int | None = None, env_vars: Mapping[str, str] | None = None, **kwargs: Any
    ) -> str:
        """See OpenEnv. `port` is the server's own, inside (8000). Raises RuntimeError."""
        command = kwargs.pop("command", self._command)
        spec = SandboxSpec(
            **{"image": image_of(image), "env": dict(env_vars or {}), **self._fields, **kwargs}
        )
        return self._server.start(spec, command, port or _PORT)

    def stop_container(self) -> None:
        """See OpenEnv; repeated calls are fine."""
        self._server.stop()

    def wait_for_ready(self, base_url: str, timeout_s: float = 30.0) -> None:
        """See OpenEnv. Raises TimeoutError, and RuntimeError with its output when the server has ended."""
        self._server.ready(base_url, timeout_s)


class OrchardRuntimeProvider(RuntimeProvider):
    """A project of this machine, served in a sandbox whose image has what it needs."""

    def __init__(
        self, project_path: str | Path, *, image: str, command: str | None = None, **fields: Any
    ) -> None:
        """See OrchardProvider; the project's content is copied to the sandbox's workdir."""
        self._project = Path(project_path)
        self._made = (image, command, fields)
        self._server = _Server()
        self._url = ""

    def start(self, port: int | None = None, env_vars: Mapping[str, str] | None = None, **kwargs: Any) -> str:
        """See OpenEnv. Raises RuntimeError."""
        image, command, fields = self._made
        spec = SandboxSpec(**{"image": image_of(image), "env": dict(env_vars or {}), **fields, **kwargs})
        self._url = self._server.start(spec, command, port or _PORT, self._project)
        return self._url

    def stop(self) -> None:
        """See OpenEnv; repeated calls are fine."""
        self._server.stop()

    def wait_for_ready(self, timeout_s: float = 30.0) -> None:
        """See OpenEnv. Raises as `OrchardProvider.wait_for_ready`."""
        self._server.ready(self._url, timeout_s)
