"""A provider whose sandboxes outlive whoever made them, without a cluster: real agents in sessions of their
own, and a directory that says which of them stand."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import time
from pathlib import Path

from orchard_core import (
    AdoptingAgentProvider,
    AgentClient,
    AgentEndpoint,
    Capabilities,
    NetworkMode,
    SandboxCreateFailed,
    SandboxError,
    SandboxExists,
    SandboxGone,
    SandboxSpec,
    SandboxUnavailable,
    StandingSandbox,
    agent_binary,
)

CAPABILITIES = Capabilities(
    images=frozenset({"host"}),
    networks=frozenset({NetworkMode.HOST}),
    isolated=False,
    private_paths=False,
)


def standing_provider(root: Path) -> AdoptingAgentProvider:
    """A provider over a directory; another one over the same directory adopts what this one made."""
    return AdoptingAgentProvider(name="standing", capabilities=CAPABILITIES, places=StandingAgents(root))


def break_lists(root: Path, broken: bool) -> None:
    """From now on nobody can be told what stands, or can again."""
    mark = root / ".broken"
    mark.touch() if broken else mark.unlink(missing_ok=True)


def end_all(root: Path) -> None:
    """End every agent that a test has left."""
    for record in root.glob("*/pid"):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(int(record.read_text()), signal.SIGKILL)


class StandingAgents:
    """Honours `AdoptingPlaces`."""

    def __init__(self, root: Path) -> None:
        self._root = root

    async def place(self, sandbox_id: str, spec: SandboxSpec) -> StandingAgent:
        """See Places."""
        path = self._root / sandbox_id
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            raise SandboxExists(f"{sandbox_id} stands") from None
        (path / "work").mkdir()
        return StandingAgent(path, spec)

    async def close(self) -> None:
        """See Places."""

    async def standing(self) -> list[StandingSandbox]:
        """See AdoptingPlaces."""
        if (self._root / ".broken").exists():
            raise SandboxUnavailable("the list cannot be had", hint="come again")
        return [self._read(path.parent) for path in self._root.glob("*/sandbox.json")]

    async def find(self, sandbox_id: str) -> tuple[StandingAgent, StandingSandbox]:
        """See AdoptingPlaces."""
        if (self._root / ".broken").exists():
            raise SandboxUnavailable("the list cannot be had", hint="come again")
        path = self._root / sandbox_id
        if not (path / "sandbox.json").exists():
            raise SandboxGone(f"{sandbox_id} does not stand")
        found = self._read(path)
        return StandingAgent(path, found.spec), found

    def _read(self, path: Path) -> StandingSandbox:
        return StandingSandbox.model_validate_json((path / "sandbox.json").read_bytes())


class StandingAgent:
    """Honours `StandingPlace`."""

    def __init__(self, path: Path, spec: SandboxSpec) -> None:
        self._path = path
        self._spec = spec
        self._pid = ""
        self.workdir = str(path / "work")

    async def restart(self) -> AgentClient:
        """See Place."""
        token = secrets.token_urlsafe(32)
        (self._path / "token").write_text(token)
        (self._path / "kept-token").write_text(token)
        agent = subprocess.Popen(
            [agent_binary(), "--listen", f"unix:{self._path / 'agent.sock'}", "--sandbox-id", self._path.name,
             "--token-file", str(self._path / "token"), "--workdir", self.workdir, "--ignore-term"],
            env={"PATH": os.environ["PATH"], "HOME": self.workdir, **self._spec.env},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        self._pid = str(agent.pid)
        (self._path / "pid").write_text(self._pid)
        client = self._client()
        try:
            await client.wait_ready(30.0)
        except (TimeoutError, SandboxError) as error:
            raise SandboxCreateFailed(f"{self._path.name}: {error}") from error
        record = StandingSandbox(id=self._path.name, spec=self._spec, created=time.time())
        (self._path / "sandbox.json").write_text(record.model_dump_json())
        return client

    async def attach(self) -> AgentClient:
        """See StandingPlace."""
        self._pid = (self._path / "pid").read_text()
        return self._client()

    def _client(self) -> AgentClient:
        url = f"unix:{self._path / 'agent.sock'}"
        token = (self._path / "kept-token").read_text()
        return AgentClient(AgentEndpoint(url=url, token=token, sandbox_id=self._path.name))

    async def destroy(self) -> None:
        """See Place."""
        with contextlib.suppress(OSError, SandboxError):
            (self._path / "sandbox.json").unlink()
            async with self._client() as client:
                await client.shutdown()
        await asyncio.to_thread(shutil.rmtree, self._path, ignore_errors=True)

    def ended(self) -> str | None:
        """See Place."""
        try:
            same = (self._path / "pid").read_text() == self._pid
        except OSError:
            same = False
        return None if same else f"sandbox {self._path.name} was deleted"
