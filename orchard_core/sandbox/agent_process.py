"""Agents as ordinary processes of this machine, each in a directory of its own."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import secrets
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from orchard_core.errors import SandboxCreateFailed, SandboxError, SandboxUnavailable
from orchard_core.sandbox.agent import AgentClient, agent_binary
from orchard_core.sandbox.local.reaper import reap
from orchard_core.sandbox.local.removal import remove_tree
from orchard_core.sandbox.local.state import DriverState, candidate_roots, register_driver
from orchard_core.sandbox.unix_socket import listen_at
from orchard_core.types.sandbox import AgentEndpoint, SandboxSpec

_END_S = 5.0
_DEFAULT_WORKDIR = "/workspace"

Launcher = Callable[[Path, SandboxSpec], Sequence[str]]
"""The words to put before the agent's own command line, such as `bwrap ... --`, given the sandbox's directory
and spec. What they start must hand on open file descriptors and end when the agent ends."""


def _as_it_is(_directory: Path, _spec: SandboxSpec) -> Sequence[str]:
    return ()


class AgentProcesses:
    """Places that are directories of this machine. Those of a driver that died are removed by the next one.

    `/workspace`, which cannot be made here, stands for a fresh directory; any other working directory must
    exist.
    """

    def __init__(
        self, *, launcher: Launcher = _as_it_is, state_dir: str | None = None, timeout_s: float = 30.0
    ) -> None:
        """`state_dir` None: as for the provider `local`; `timeout_s`: for an agent's first answer."""
        self._launcher = launcher
        self._state_dir = state_dir
        self._timeout_s = timeout_s
        self._state: DriverState | None = None

    async def place(self, sandbox_id: str, spec: SandboxSpec) -> AgentProcess:
        """See Places. Raises SandboxUnavailable when no directory can be had."""
        if self._state is None:
            self._state = await asyncio.to_thread(_register, self._state_dir)
        path = self._state.box(sandbox_id)
        for name in ("", "workspace", "home", "tmp"):
            (path / name).mkdir(mode=0o700)
        return AgentProcess(
            sandbox_id=sandbox_id,
            workdir=str(path / "workspace") if spec.workdir == _DEFAULT_WORKDIR else spec.workdir,
            env=spec.env,
            path=path,
            launcher=self._launcher(path, spec),
            timeout_s=self._timeout_s,
        )

    async def close(self) -> None:
        """See Places."""
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


class AgentProcess:
    """Honours `NewPlace`. Made by `AgentProcesses.place`."""

    def __init__(
        self,
        *,
        sandbox_id: str,
        workdir: str,
        env: Mapping[str, str],
        path: Path,
        launcher: Sequence[str],
        timeout_s: float,
    ) -> None:
        self._id = sandbox_id
        self._timeout_s = timeout_s
        self._path = path
        self._launcher = launcher
        self.workdir = workdir
        self._env = env
        self._agent: subprocess.Popen[bytes] | None = None
        self._lifeline: io.FileIO | None = None

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

    def ended(self) -> str | None:
        """See Place."""
        if self._agent is None or self._agent.poll() is None:
            return None
        return f"sandbox {self._id} ended: its agent was killed or failed (exit {self._agent.returncode})"

    async def destroy(self) -> None:
        """See Place."""
        with contextlib.suppress(OSError):
            await asyncio.to_thread(self._remove)

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
                    *self._launcher, agent_binary(), "--listen", f"fd:{listener.fileno()}",
                    "--token-fd", str(token_fd), "--life-fd", str(life_fd), "--sandbox-id", self._id,
                    "--workdir", self.workdir, "--spool", str(self._path / "tmp"), "--ignore-term",
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
