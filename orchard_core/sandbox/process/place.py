"""An agent as an ordinary process in a directory of its own."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import secrets
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from orchard_core.errors import SandboxCreateFailed, SandboxError
from orchard_core.sandbox.agent import AgentClient, agent_binary
from orchard_core.sandbox.local.removal import remove_tree
from orchard_core.sandbox.unix_socket import listen_at
from orchard_core.types.sandbox import AgentEndpoint

_END_S = 5.0


class ProcessPlace:
    """Implements orchard_core.sandbox.agent_sandbox.Place."""

    def __init__(
        self,
        *,
        sandbox_id: str,
        workdir: str | None,
        env: Mapping[str, str],
        path: Path,
        timeout_s: float,
        on_destroyed: Callable[[], None],
    ) -> None:
        """`workdir` None: a fresh directory named workspace."""
        self._id = sandbox_id
        self._timeout_s = timeout_s
        self._on_destroyed = on_destroyed
        self._path = path
        self.workdir = workdir or str(self._path / "workspace")
        self._env = env
        self._agent: subprocess.Popen[bytes] | None = None
        self._lifeline: io.FileIO | None = None
        self._client: AgentClient | None = None
        self._watcher: asyncio.Task[None] | None = None

    async def open(self) -> AgentClient:
        """Make the directories and start the first agent. Raises SandboxCreateFailed."""
        for name in ("", "workspace", "home", "tmp"):
            (self._path / name).mkdir(mode=0o700)
        return await self.restart()

    async def restart(self) -> AgentClient:
        """See Place."""
        await asyncio.to_thread(self._end_agent)
        token = secrets.token_urlsafe(32)
        try:
            await asyncio.to_thread(self._spawn, token)
        except OSError as error:
            raise SandboxCreateFailed(f"sandbox {self._id} did not start: {error}") from error
        client = AgentClient(
            AgentEndpoint(url=f"unix:{self._path / 'agent.sock'}", token=token, sandbox_id=self._id)
        )
        try:
            async with asyncio.timeout(self._timeout_s):
                await client.health()
        except (SandboxError, TimeoutError) as error:
            await client.close()
            raise SandboxCreateFailed(f"sandbox {self._id}: its agent does not answer: {error}") from error
        return client

    def watch(self, work: asyncio.Task[None]) -> None:
        """A task to end with the sandbox."""
        self._watcher = work

    def ended(self) -> str | None:
        """See Place."""
        if self._agent is None or self._agent.poll() is None:
            return None
        return f"sandbox {self._id} ended: its agent was killed or failed (exit {self._agent.returncode})"

    async def destroy(self) -> None:
        """See Place."""
        if self._watcher is not None:
            self._watcher.cancel()
        with contextlib.suppress(OSError):
            await asyncio.to_thread(self._remove)
        self._on_destroyed()

    def _spawn(self, token: str) -> None:
        with contextlib.ExitStack() as stack:
            listener = stack.enter_context(listen_at(self._path / "agent.sock"))
            token_fd = os.memfd_create("token", os.MFD_CLOEXEC)
            stack.callback(os.close, token_fd)
            os.write(token_fd, token.encode())
            os.lseek(token_fd, 0, os.SEEK_SET)
            life_fd, held = os.pipe2(os.O_CLOEXEC)
            stack.callback(os.close, life_fd)
            self._lifeline = io.FileIO(held, "wb")
            self._agent = subprocess.Popen(
                [
                    agent_binary(), "--listen", f"fd:{listener.fileno()}", "--token-fd", str(token_fd),
                    "--life-fd", str(life_fd), "--sandbox-id", self._id, "--workdir", self.workdir,
                    "--spool", str(self._path / "tmp"), "--ignore-term",
                ],
                pass_fds=(listener.fileno(), token_fd, life_fd), env=self._environment(), cwd="/",
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                start_new_session=True,
            )  # fmt: skip

    def _environment(self) -> dict[str, str]:
        """Not the driver's: that holds keys."""
        own = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(self._path / "home")}
        return own | {"TMPDIR": str(self._path / "tmp"), "LANG": "C.UTF-8"} | dict(self._env)

    def _end_agent(self) -> None:
        """Let go of the lifeline: the agent then ends all it started, and itself."""
        if self._lifeline is not None:
            self._lifeline.close()
        if self._agent is not None:
            try:
                self._agent.wait(_END_S)
            except subprocess.TimeoutExpired:
                self._agent.kill()
                self._agent.wait()

    def _remove(self) -> None:
        self._end_agent()
        remove_tree(self._path)
