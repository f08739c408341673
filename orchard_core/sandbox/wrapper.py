"""A sandbox that stands before another one, for those that change a few of its operations."""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from pathlib import Path

from orchard_core.sandbox.contract import Command, Process, Sandbox
from orchard_core.types.model import ModelEndpoint
from orchard_core.types.sandbox import (
    AgentEndpoint,
    Capabilities,
    ExecResult,
    FileEntry,
    LocalAddress,
    PtySize,
    SandboxSpec,
    Snapshot,
)


class SandboxWrapper:
    """Honours `orchard_core.Sandbox`; everything goes straight to the sandbox it stands before."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    @property
    def id(self) -> str:
        """See Sandbox."""
        return self._sandbox.id

    @property
    def spec(self) -> SandboxSpec:
        """See Sandbox."""
        return self._sandbox.spec

    @property
    def capabilities(self) -> Capabilities:
        """See Sandbox."""
        return self._sandbox.capabilities

    async def exec(
        self,
        command: Command,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes | AsyncIterable[bytes] | None = None,
        timeout: float | None = None,
        user: str | None = None,
    ) -> ExecResult:
        """See Sandbox."""
        return await self._sandbox.exec(command, cwd=cwd, env=env, stdin=stdin, timeout=timeout, user=user)

    async def start(
        self,
        command: Command,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        user: str | None = None,
        pty: PtySize | None = None,
    ) -> Process:
        """See Sandbox."""
        return await self._sandbox.start(command, cwd=cwd, env=env, timeout=timeout, user=user, pty=pty)

    def read(self, path: str, *, offset: int = 0, length: int | None = None) -> AsyncIterator[bytes]:
        """See Sandbox."""
        return self._sandbox.read(path, offset=offset, length=length)

    async def read_bytes(self, path: str, *, limit: int = 64 << 20) -> bytes:
        """See Sandbox."""
        return await self._sandbox.read_bytes(path, limit=limit)

    async def write(
        self, path: str, data: bytes | AsyncIterable[bytes], *, mode: int = 0o644, user: str | None = None
    ) -> None:
        """See Sandbox."""
        await self._sandbox.write(path, data, mode=mode, user=user)

    async def upload(self, source: Path, target: str) -> None:
        """See Sandbox."""
        await self._sandbox.upload(source, target)

    async def download(self, source: str, target: Path) -> None:
        """See Sandbox."""
        await self._sandbox.download(source, target)

    def read_tree(self, path: str) -> AsyncIterator[bytes]:
        """See Sandbox."""
        return self._sandbox.read_tree(path)

    async def write_tree(self, path: str, data: AsyncIterable[bytes]) -> None:
        """See Sandbox."""
        await self._sandbox.write_tree(path, data)

    async def list(self, path: str) -> builtins.list[FileEntry]:
        """See Sandbox."""
        return await self._sandbox.list(path)

    async def stat(self, path: str) -> FileEntry:
        """See Sandbox."""
        return await self._sandbox.stat(path)

    async def mkdir(self, path: str) -> None:
        """See Sandbox."""
        await self._sandbox.mkdir(path)

    async def remove(self, path: str) -> None:
        """See Sandbox."""
        await self._sandbox.remove(path)

    async def forward(self, port: int) -> LocalAddress:
        """See Sandbox."""
        return await self._sandbox.forward(port)

    async def expose_model(self, endpoint: ModelEndpoint) -> ModelEndpoint:
        """See Sandbox."""
        return await self._sandbox.expose_model(endpoint)

    async def endpoint(self) -> AgentEndpoint:
        """See Sandbox."""
        return await self._sandbox.endpoint()

    async def withdraw(self, endpoint: AgentEndpoint) -> None:
        """See Sandbox."""
        await self._sandbox.withdraw(endpoint)

    async def reset_processes(self) -> None:
        """See Sandbox."""
        await self._sandbox.reset_processes()

    async def snapshot(self) -> Snapshot:
        """See Sandbox."""
        return await self._sandbox.snapshot()

    async def fork(self, count: int) -> builtins.list[Sandbox]:
        """See Sandbox."""
        return await self._sandbox.fork(count)

    async def alive(self) -> bool:
        """See Sandbox."""
        return await self._sandbox.alive()

    async def close(self) -> None:
        """See Sandbox."""
        await self._sandbox.close()

    async def __aenter__(self) -> Sandbox:
        await self._sandbox.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._sandbox.__aexit__(*exc)
