"""The synchronous face of one sandbox."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Literal, overload

from orchard_env.client.answers import FileInfo, JobResult, PatchResult, SandboxAnswer, Uploaded
from orchard_env.client.instance import AsyncSandboxInstance
from orchard_env.client.loop import background_loop
from orchard_env.client.process import AsyncContainerProcess
from orchard_env.client.sync_process import ContainerProcess

if TYPE_CHECKING:
    from orchard_env.client.sync_client import SandboxClient


class SandboxInstance:
    """Runs commands and moves files; see AsyncSandboxInstance, which does it. Any thread may call any
    method. As a context manager it deletes its sandbox."""

    def __init__(self, client: SandboxClient, answer: SandboxAnswer, inner: AsyncSandboxInstance) -> None:
        """Made by `create_sandbox` and `get_sandbox`."""
        self._client = client
        self._answer = answer
        self._instance = inner
        self._pid = os.getpid()
        self._instance_pid = self._pid
        self.sandbox_id = answer.sandbox_id
        """See AsyncSandboxInstance."""
        self.namespace = answer.namespace
        """See AsyncSandboxInstance."""
        self.image = answer.image
        """See AsyncSandboxInstance."""
        self.block_network = answer.block_network
        """See AsyncSandboxInstance."""
        self.cpu = answer.cpu
        """See AsyncSandboxInstance."""
        self.memory = answer.memory
        """See AsyncSandboxInstance."""

    @property
    def status(self) -> str:
        """See AsyncSandboxInstance."""
        return self._inner.status

    @property
    def _inner(self) -> AsyncSandboxInstance:
        """Of this process: a fork()ed child has connections of its own."""
        if self._instance_pid != os.getpid():
            self._instance = AsyncSandboxInstance(self._client.inner, self._answer)
            self._instance_pid = os.getpid()
        return self._instance

    @overload
    def exec(
        self,
        command: str | Sequence[str],
        timeout: float | None = ...,
        cwd: str | None = ...,
        env: Mapping[str, str] | None = ...,
        wait: bool = ...,
        poll_interval: float = ...,
        login_shell: bool = ...,
        pty: Literal[False] = ...,
        rows: int = ...,
        cols: int = ...,
    ) -> JobResult: ...

    @overload
    def exec(
        self,
        command: str | Sequence[str],
        timeout: float | None = ...,
        cwd: str | None = ...,
        env: Mapping[str, str] | None = ...,
        wait: bool = ...,
        poll_interval: float = ...,
        login_shell: bool = ...,
        *,
        pty: Literal[True],
        rows: int = ...,
        cols: int = ...,
    ) -> ContainerProcess: ...

    def exec(
        self,
        command: str | Sequence[str],
        timeout: float | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        wait: bool = True,
        poll_interval: float = 0.1,
        login_shell: bool = False,
        pty: bool = False,
        rows: int = 24,
        cols: int = 80,
    ) -> JobResult | ContainerProcess:
        """See AsyncSandboxInstance."""
        inner = self._inner
        work = inner.run(command, timeout, cwd, env, wait, poll_interval, login_shell, pty, rows, cols)
        ended = background_loop().run(work)
        return ContainerProcess(ended) if isinstance(ended, AsyncContainerProcess) else ended

    def apply_patch(self, patch: str, timeout: float = 30) -> PatchResult:
        """See AsyncSandboxInstance."""
        return background_loop().run(self._inner.apply_patch(patch, timeout))

    def get_job(self, job_id: str) -> JobResult:
        """See AsyncSandboxInstance."""
        return background_loop().run(self._inner.get_job(job_id))

    def upload_file(self, local_path: str | os.PathLike[str], remote_path: str) -> Uploaded:
        """See AsyncSandboxInstance."""
        return background_loop().run(self._inner.upload_file(local_path, remote_path))

    def upload_content(self, content: bytes | str, remote_path: str) -> Uploaded:
        """See AsyncSandboxInstance."""
        return background_loop().run(self._inner.upload_content(content, remote_path))

    def download_file(self, remote_path: str, local_path: str | os.PathLike[str]) -> int:
        """See AsyncSandboxInstance."""
        return background_loop().run(self._inner.download_file(remote_path, local_path))

    def download_content(self, remote_path: str) -> bytes:
        """See AsyncSandboxInstance."""
        return background_loop().run(self._inner.download_content(remote_path))

    def list_files(self, remote_path: str = "/") -> list[FileInfo]:
        """See AsyncSandboxInstance."""
        return background_loop().run(self._inner.list_files(remote_path))

    def heartbeat(self) -> None:
        """See AsyncSandboxInstance."""
        background_loop().run(self._inner.heartbeat())

    def start_heartbeat(self, interval: float = 60) -> None:
        """See AsyncSandboxInstance."""
        background_loop().run(self._inner.start_heartbeat(interval))

    def stop_heartbeat(self) -> None:
        """See AsyncSandboxInstance."""
        background_loop().run(self._inner.stop_heartbeat())

    def delete(self) -> None:
        """See AsyncSandboxInstance."""
        background_loop().run(self._inner.delete())

    def __enter__(self) -> SandboxInstance:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if os.getpid() == self._pid:  # a fork()ed child leaves its parent's sandboxes alone
            self.delete()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.sandbox_id}, {self.status})"
