"""One sandbox of a service."""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, overload
from urllib.parse import quote

from orchard_core import ExecForgotten, OrchardError, unbroken
from orchard_env.client.answers import (
    FileInfo,
    JobResult,
    PatchResult,
    SandboxAnswer,
    SandboxDeleted,
    Uploaded,
)
from orchard_env.client.files import SandboxFiles
from orchard_env.client.process import AsyncContainerProcess

if TYPE_CHECKING:
    from orchard_env.client.client import AsyncSandboxClient

WAIT_S = 60.0
"""One wait on the server; the client asks again."""
_GRACE_S = 60.0
"""What a command's own time-out is given on top before the client stops waiting."""
_BASH_OR_SH = 'if command -v bash >/dev/null 2>&1; then exec bash -c "$0"; fi; exec sh -c "$0"'


class AsyncSandboxInstance:
    """Runs commands and moves files. As a context manager it deletes its sandbox."""

    def __init__(self, client: AsyncSandboxClient, answer: SandboxAnswer) -> None:
        """Made by `create_sandbox` and `get_sandbox`."""
        self.answer = answer
        """What the service said of it."""
        self._client = client
        self._http = client.http
        self.sandbox_id = answer.sandbox_id
        """Its id."""
        self.namespace = answer.namespace
        """Where in the cluster."""
        self.image = answer.image
        """What it runs."""
        self.block_network = answer.block_network
        """It reaches nothing outside."""
        self.cpu = answer.cpu
        """Cores."""
        self.memory = answer.memory
        """Memory."""
        self.status = answer.status
        """As last heard: pending, ready or failed."""
        self._path = f"/sandboxes/{quote(answer.sandbox_id, safe='')}"
        self._files = SandboxFiles(client.http, answer.sandbox_id)
        self._beating: asyncio.Task[None] | None = None
        self._deleted = False
        self._pid = os.getpid()

    @overload
    async def exec(
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
    async def exec(
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
    ) -> AsyncContainerProcess: ...

    async def exec(
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
    ) -> JobResult | AsyncContainerProcess:
        """Run a command; with `wait` to its end, else the job as it was queued. `timeout` (seconds) ends the
        command. With `pty` it runs on a terminal of that size, and its handle is returned.

        A command that fails is a JobResult, not an error. Against a service of ours it runs at most once
        whatever breaks meanwhile; another one is asked once, and a broken connection is an error. Raises
        TimeoutError when the service does not end the command a minute after its time-out, SandboxGone,
        SandboxConnectionLost, ServiceOverloaded, and what keeps a command from starting.
        """
        return await self.run(command, timeout, cwd, env, wait, poll_interval, login_shell, pty, rows, cols)

    async def run(
        self,
        command: str | Sequence[str],
        timeout: float | None,
        cwd: str | None,
        env: Mapping[str, str] | None,
        wait: bool,
        poll_interval: float,
        login_shell: bool,
        pty: bool,
        rows: int,
        cols: int,
    ) -> JobResult | AsyncContainerProcess:
        """What `exec` does, for who does not know `pty` beforehand."""
        self._alive()
        if pty:
            return await self._terminal(command, cwd, env, login_shell, rows, cols)
        body: dict[str, Any] = {
            "command": command if isinstance(command, str) else list(command),
            "timeout_seconds": timeout,
            "cwd": cwd,
            "env": None if env is None else dict(env),
            "login_shell": login_shell,
            "wait": wait,
        }
        ours = await self._client.ours()
        if ours:
            body["exec_id"] = uuid.uuid4().hex
        patience = max(self._client.timeout, (timeout or 0.0) + _GRACE_S)
        said = await self._http.json("POST", f"{self._path}/exec", body=body, repeat=ours, timeout_s=patience)
        said = {"sandbox_id": self.sandbox_id, "command": body["command"], "created_at": time.time(), **said}
        job = JobResult.model_validate(said)
        if not wait or job.is_complete:
            return job
        return await self._ended(job.job_id, timeout, poll_interval)

    async def _ended(self, job_id: str, timeout: float | None, poll_s: float) -> JobResult:
        """The job when it has ended. The service waits where it can; otherwise it is asked now and then."""
        begun = time.monotonic()
        path = f"/jobs/{quote(job_id, safe='')}"
        waits = True
        while True:
            left = None if timeout is None else timeout + _GRACE_S - (time.monotonic() - begun)
            if left is not None and left <= 0:
                raise TimeoutError(f"job {job_id} did not end within {timeout:g} s and a minute more")
            if waits:
                job, waits = await self._waited(path, min(WAIT_S, left or WAIT_S))
            else:
                await asyncio.sleep(poll_s)
                job = await self.get_job(job_id)
            if job is not None and job.is_complete:
                return job

    async def _waited(self, path: str, seconds: float) -> tuple[JobResult | None, bool]:
        """The job, if the wait ended with one, and whether the service knows how to wait."""
        said = await self._client.waited(f"{path}/wait", seconds, missing=ExecForgotten)
        if said is None:
            return None, True
        return (JobResult.model_validate(said), True) if said else (None, False)

    async def _terminal(
        self,
        command: str | Sequence[str],
        cwd: str | None,
        env: Mapping[str, str] | None,
        login_shell: bool,
        rows: int,
        cols: int,
    ) -> AsyncContainerProcess:
        argv = ["sh", "-c", _BASH_OR_SH, command] if isinstance(command, str) else list(command)
        init: dict[str, object] = {
            "cmd": argv,
            "env": dict(env or {}),
            "cwd": cwd,
            "rows": rows,
            "cols": cols,
            "login_shell": login_shell,
        }
        ours = await self._client.ours()
        return await AsyncContainerProcess.open(
            self._http, f"{self._path}/exec/pty", init, key_in_query=not ours
        )

    async def get_job(self, job_id: str) -> JobResult:
        """How a job stands. Raises ExecForgotten when there is none, or none any more."""
        said = await self._http.json(
            "GET", f"/jobs/{quote(job_id, safe='')}", repeat=True, missing=ExecForgotten
        )
        return JobResult.model_validate(said)

    async def apply_patch(self, patch: str, timeout: float = 30) -> PatchResult:
        """Apply a unified diff in the working directory; one that does not fit is a result, not an error."""
        self._alive()
        said = await self._http.json(
            "POST",
            f"{self._path}/apply_patch",
            body={"patch": patch, "timeout_seconds": timeout},
            timeout_s=max(self._client.timeout, timeout + _GRACE_S),
        )
        code = said.get("exit_code")
        return {
            "success": bool(said.get("success")),
            "stdout": str(said.get("stdout") or ""),
            "stderr": str(said.get("stderr") or ""),
            "exit_code": code if isinstance(code, int) else None,
            "error": said.get("error"),
        }

    async def upload_file(self, local_path: str | os.PathLike[str], remote_path: str) -> Uploaded:
        """Copy a file in, however large. Raises FileMissing, FileDenied, IsADirectory, DiskFull."""
        self._alive()
        return await self._files.upload(Path(local_path), remote_path, streams=await self._client.ours())

    async def upload_content(self, content: bytes | str, remote_path: str) -> Uploaded:
        """Write bytes, or text as UTF-8, as a file. Raises as `upload_file`."""
        self._alive()
        raw = content.encode() if isinstance(content, str) else content
        return await self._files.put(raw, remote_path)

    async def download_file(self, remote_path: str, local_path: str | os.PathLike[str]) -> int:
        """Copy a file out, however large; its size. Nothing is left when that fails. Raises FileMissing,
        FileDenied, IsADirectory."""
        self._alive()
        return await self._files.download(remote_path, Path(local_path), streams=await self._client.ours())

    async def download_content(self, remote_path: str) -> bytes:
        """The content of a file. Raises as `download_file`."""
        self._alive()
        return await self._files.get(remote_path)

    async def list_files(self, remote_path: str = "/") -> list[FileInfo]:
        """Entries of a directory. Raises FileMissing, NotADirectory."""
        self._alive()
        return await self._files.list(remote_path)

    async def heartbeat(self) -> None:
        """Say once that somebody uses it: from then on the service deletes it when no more are heard."""
        self._alive()
        await self._http.json("POST", f"{self._path}/heartbeat", repeat=True)

    async def start_heartbeat(self, interval: float = 60) -> None:
        """Say so now, and every so many seconds until `stop_heartbeat` or `delete`."""
        if self._beating is None or self._beating.done():
            await self.heartbeat()
            self._beating = asyncio.create_task(self._beat(interval))

    async def _beat(self, interval: float) -> None:
        while True:
            await asyncio.sleep(interval)
            with suppress(OrchardError):  # the next one may come through; a call will tell what is wrong
                await self._http.json("POST", f"{self._path}/heartbeat", repeat=True)

    async def stop_heartbeat(self) -> None:
        """Say no more."""
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.gather(self._beating, return_exceptions=True)
            self._beating = None

    async def delete(self) -> None:
        """Delete the sandbox; fine when it is gone. A cancelled caller waits until it is."""
        if self._deleted:
            return
        await unbroken(self._delete())

    async def _delete(self) -> None:
        await self.stop_heartbeat()
        await self._client.delete_sandbox(self.sandbox_id)
        self._deleted = True
        self.status = "deleted"

    def _alive(self) -> None:
        if self._deleted:
            raise SandboxDeleted(
                f"sandbox {self.sandbox_id} was deleted", hint="create another with create_sandbox"
            )

    async def __aenter__(self) -> AsyncSandboxInstance:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if os.getpid() == self._pid:  # a fork()ed child leaves its parent's sandboxes alone
            await self.delete()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.sandbox_id}, {self.status})"
