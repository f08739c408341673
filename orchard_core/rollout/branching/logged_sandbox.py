"""A sandbox whose operations pass through a log."""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from pathlib import Path

from orchard_core.rollout.branching.operations import Doing, Fed, OperationLog
from orchard_core.sandbox.contract import Command, Process, Sandbox
from orchard_core.sandbox.wrapper import SandboxWrapper
from orchard_core.types.model import ModelEndpoint
from orchard_core.types.sandbox import (
    AgentEndpoint,
    ExecResult,
    FileEntry,
    LocalAddress,
    PtySize,
)


class LoggedSandbox(SandboxWrapper):
    """Honours `orchard_core.Sandbox`. What leaves more behind than files is told to the log as beyond it."""

    def __init__(self, sandbox: Sandbox, log: OperationLog) -> None:
        super().__init__(sandbox)
        self._log = log

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
        """See Sandbox. How long it may take is no part of what was done."""
        fed = Fed(stdin)
        said = command if isinstance(command, str) else builtins.list(command)
        doing = Doing(what=("exec", said, cwd, dict(env or {}), user), fed=fed)
        return await self._log.once(
            doing,
            lambda: self._sandbox.exec(command, cwd=cwd, env=env, stdin=fed.data, timeout=timeout, user=user),
        )

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
        self._log.beyond("a process was started")
        return await self._sandbox.start(command, cwd=cwd, env=env, timeout=timeout, user=user, pty=pty)

    def read(self, path: str, *, offset: int = 0, length: int | None = None) -> AsyncIterator[bytes]:
        """See Sandbox."""
        doing = Doing(what=("read", path, offset, length))
        return self._log.pieces(doing, lambda: self._sandbox.read(path, offset=offset, length=length))

    async def read_bytes(self, path: str, *, limit: int = 64 << 20) -> bytes:
        """See Sandbox."""
        doing = Doing(what=("read_bytes", path, limit))
        return await self._log.once(doing, lambda: self._sandbox.read_bytes(path, limit=limit))

    async def write(
        self, path: str, data: bytes | AsyncIterable[bytes], *, mode: int = 0o644, user: str | None = None
    ) -> None:
        """See Sandbox."""
        fed = Fed(data)
        doing = Doing(what=("write", path, mode, user), fed=fed)
        await self._log.once(doing, lambda: self._sandbox.write(path, fed.data or b"", mode=mode, user=user))

    async def upload(self, source: Path, target: str) -> None:
        """See Sandbox."""
        doing = Doing(what=("upload", source, target))
        await self._log.once(doing, lambda: self._sandbox.upload(source, target))

    async def download(self, source: str, target: Path) -> None:
        """See Sandbox."""
        self._log.beyond("files were taken out to the host")
        await self._sandbox.download(source, target)

    def read_tree(self, path: str) -> AsyncIterator[bytes]:
        """See Sandbox."""
        return self._log.pieces(Doing(what=("read_tree", path)), lambda: self._sandbox.read_tree(path))

    async def write_tree(self, path: str, data: AsyncIterable[bytes]) -> None:
        """See Sandbox."""
        fed = Fed(data)
        whole = fed.data if fed.data is not None and not isinstance(fed.data, bytes) else data
        await self._log.once(
            Doing(what=("write_tree", path), fed=fed), lambda: self._sandbox.write_tree(path, whole)
        )

    async def list(self, path: str) -> builtins.list[FileEntry]:
        """See Sandbox."""
        return await self._log.once(Doing(what=("list", path)), lambda: self._sandbox.list(path))

    async def stat(self, path: str) -> FileEntry:
        """See Sandbox."""
        return await self._log.once(Doing(what=("stat", path)), lambda: self._sandbox.stat(path))

    async def mkdir(self, path: str) -> None:
        """See Sandbox."""
        await self._log.once(Doing(what=("mkdir", path)), lambda: self._sandbox.mkdir(path))

    async def remove(self, path: str) -> None:
        """See Sandbox."""
        await self._log.once(Doing(what=("remove", path)), lambda: self._sandbox.remove(path))

    async def forward(self, port: int) -> LocalAddress:
        """See Sandbox."""
        self._log.beyond("a port was forwarded")
        return await self._sandbox.forward(port)

    async def expose_model(self, endpoint: ModelEndpoint) -> ModelEndpoint:
        """See Sandbox."""
        self._log.beyond("the model was shown inside")
        return await self._sandbox.expose_model(endpoint)

    async def endpoint(self) -> AgentEndpoint:
        """See Sandbox."""
        self._log.beyond("another program works in the sandbox by itself")
        return await self._sandbox.endpoint()
