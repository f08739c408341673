"""Who may call, how the agent comes up, and how it ends."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchard_core.errors import (
    AgentRefused,
    ConfigError,
    SandboxConnectionLost,
    SandboxError,
    SandboxGone,
    SandboxUnavailable,
)
from orchard_core.sandbox.agent import AgentAddress, AgentClient, agent_binary
from orchard_core.types.sandbox import AgentEndpoint

Launch = Callable[..., Awaitable[AgentClient]]
Processes = list[subprocess.Popen[bytes]]


@pytest.mark.parametrize("change", [{"token": "wrong" * 8}, {"token": ""}, {"sandbox_id": "another"}])
async def test_every_call_needs_the_token_and_the_sandbox_id(
    agent: AgentClient, tmp_path: Path, change: dict[str, Any]
) -> None:
    stranger = AgentClient(replace(agent.endpoint, **change))
    for call in (
        stranger.health,
        stranger.metrics,
        stranger.kill_all,
        stranger.mint_token,
        lambda: stranger.exec(["touch", str(tmp_path / "touched")]),
        lambda: stranger.write(str(tmp_path / "touched"), b"x"),
        lambda: stranger.list("/"),
        lambda: stranger.tunnel("/nowhere"),
    ):
        with pytest.raises(AgentRefused):
            await call()
    assert not (tmp_path / "touched").exists()
    await stranger.close()


async def test_a_minted_token_may_work_but_not_rule(agent: AgentClient, tmp_path: Path) -> None:
    async with AgentClient(await agent.mint_token()) as worker:
        assert (await worker.exec("echo hi")).stdout == b"hi\n"
        await worker.write(str(tmp_path / "file"), b"x")
        for call in (
            worker.kill_all,
            worker.mint_token,
            lambda: worker.tunnel("/nowhere"),
            lambda: worker.revoke_token("x"),
        ):
            with pytest.raises(AgentRefused):
                await call()
        await worker.shutdown()
    assert (await agent.health()).sandbox == "box"


async def test_a_token_that_ends_takes_its_commands_with_it(agent: AgentClient) -> None:
    given, other = await agent.mint_token(), await agent.mint_token()
    async with AgentClient(given) as worker, AgentClient(other) as neighbour:
        deserted = await worker.start("setsid sleep 300 & sleep 300")
        kept = await neighbour.start("sleep 300")
        await agent.revoke_token(given.token)
        status = await (await agent.attach(deserted.id)).wait()
        assert status.exit_code == 137
        assert (await agent.health()).running == 1
        await kept.kill()


async def test_a_minted_token_ends_when_it_is_revoked_or_old(agent: AgentClient) -> None:
    short, revoked = await agent.mint_token(ttl_s=1), await agent.mint_token()
    await agent.revoke_token(revoked.token)
    await agent.revoke_token(agent.endpoint.token)
    async with AgentClient(revoked) as worker:
        with pytest.raises(AgentRefused):
            await worker.health()
    await asyncio.sleep(1.1)
    async with AgentClient(short) as worker:
        with pytest.raises(AgentRefused):
            await worker.health()
    assert (await agent.health()).running == 0


async def test_no_secret_shows_on_the_command_line_or_in_a_repr(
    agent: AgentClient, processes: Processes
) -> None:
    line = Path(f"/proc/{processes[0].pid}/cmdline").read_bytes()
    assert agent.endpoint.token.encode() not in line
    assert agent.endpoint.token not in repr(agent.endpoint)


async def test_the_token_may_come_from_a_file_that_then_vanishes(binary: Path, tmp_path: Path) -> None:
    secret = tmp_path / "token"
    secret.write_text("a-token-from-a-file\n")
    command: list[str | Path] = [
        binary,
        "--listen",
        f"unix:{tmp_path}/s",
        "--sandbox-id",
        "x",
        "--token-file",
        secret,
    ]
    with subprocess.Popen(command) as process:
        endpoint = AgentEndpoint(url=f"unix:{tmp_path}/s", token="a-token-from-a-file", sandbox_id="x")
        async with AgentClient(endpoint) as client:
            await client.wait_ready()
            assert not secret.exists()
            await client.shutdown()
        assert process.wait(5) == 0


def test_a_token_file_that_is_no_file_is_left_alone(binary: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    feeding = os.open(tmp_path / "pipe", os.O_RDWR)
    os.write(feeding, b"short\n")
    command: list[str | Path] = [
        binary,
        "--listen",
        "unix:/x",
        "--sandbox-id",
        "x",
        "--token-file",
        tmp_path / "pipe",
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        time.sleep(0.2)
        os.close(feeding)
        assert process.wait(5) == 2
    assert (tmp_path / "pipe").exists()


async def test_it_serves_tcp_too_and_says_when_it_is_ready(binary: Path) -> None:
    token_in, token_out = os.pipe()
    ready_in, ready_out = os.pipe()
    os.write(token_out, b"a-token-through-a-pipe")
    os.close(token_out)
    port = 20000 + os.getpid() % 20000
    command: list[str | Path] = [binary, "--listen", f"tcp:127.0.0.1:{port}", "--sandbox-id", "x"]
    command += ["--token-fd", str(token_in), "--ready-fd", str(ready_out)]
    with subprocess.Popen(command, pass_fds=[token_in, ready_out]) as process:
        os.close(token_in)
        os.close(ready_out)
        assert await asyncio.to_thread(os.read, ready_in, 100) == b"ready\n"
        os.close(ready_in)
        endpoint = AgentEndpoint(
            url=f"http://127.0.0.1:{port}", token="a-token-through-a-pipe", sandbox_id="x"
        )
        async with AgentClient(endpoint) as client:
            assert (await client.exec(["echo", "over tcp"])).stdout == b"over tcp\n"
            await client.shutdown()
        assert process.wait(5) == 0


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--listen", "unix:/x"],
        ["--listen", "unix:/x", "--sandbox-id", "x"],
        ["--listen", "unix:/x", "--sandbox-id", "x", "--token-file", "EMPTY"],
        ["--listen", "unix:/no/such/dir/s", "--sandbox-id", "x", "--token-file", "TOKEN"],
        ["--listen", "ftp:/x", "--sandbox-id", "x", "--token-file", "TOKEN"],
    ],
)
def test_a_wrong_command_line_is_explained(binary: Path, tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "TOKEN").write_text("long-enough-a-token")
    (tmp_path / "EMPTY").touch()
    arguments = [str(tmp_path / word) if word in ("TOKEN", "EMPTY") else word for word in arguments]
    done = subprocess.run([binary, *arguments], capture_output=True, text=True, timeout=10, check=False)
    assert done.returncode == 2
    assert "orchard-agent:" in done.stderr


async def test_a_socket_path_may_be_longer_than_the_system_allows(launch: Launch, tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100) / ("e" * 100)
    deep.mkdir(parents=True)
    await launch()
    client = await launch("--listen", f"unix:{deep}/agent")
    async with AgentClient(replace(client.endpoint, url=f"unix:{deep}/agent")) as far:
        assert (await far.exec(["echo", "far"])).stdout == b"far\n"


async def _pids(file: Path, count: int) -> list[int]:
    """What so many processes have written there, once they have."""
    while True:
        lines = file.read_text().splitlines() if file.exists() else []
        if len(lines) == count:
            return [int(line) for line in lines]
        await asyncio.sleep(0.01)


def _runs(pid: int) -> bool:
    """It is there, and not merely for its parent to ask how it ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("how", ["call", "signal"])
async def test_it_ends_with_everything_it_started(
    launch: Launch, processes: Processes, tmp_path: Path, how: str
) -> None:
    client = await launch()
    sleeper = f"sh -c 'echo $$ >>{tmp_path}/pids; exec sleep 987'"
    hidden = f"(env -i setsid setsid {sleeper} &)"
    await client.start(f"trap '' TERM; {sleeper} & setsid {sleeper} & {hidden}; wait")
    pids = await _pids(tmp_path / "pids", 3)
    assert all(_runs(pid) for pid in pids)
    if how == "call":
        await client.shutdown()
    else:
        processes[0].send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(processes[0].wait, 60) == 0
    assert not any(_runs(pid) for pid in pids)
    with pytest.raises(SandboxGone):
        await client.health()


async def test_a_call_to_a_killed_agent_fails(launch: Launch, processes: Processes, tmp_path: Path) -> None:
    client, pid = await launch(), tmp_path / "pid"
    call = asyncio.create_task(client.exec("echo $$ > pid; exec sleep 30", cwd=str(tmp_path)))
    while not (pid.exists() and pid.read_text().strip()):
        await asyncio.sleep(0.01)
    processes[0].kill()
    with pytest.raises((SandboxGone, SandboxConnectionLost)):
        await call
    os.kill(int(pid.read_text()), signal.SIGKILL)


async def test_figures_are_told(agent: AgentClient) -> None:
    process = await agent.start(["sleep", "5"])
    figures = await agent.metrics()
    assert figures.execs_running == 1
    assert 0 < figures.rss_bytes < 12e6
    assert figures.requests_open == 1
    await process.kill()


def test_addresses_are_read_or_refused() -> None:
    for url in ("unix:/a/b", "http://127.0.0.1:80", "http://[::1]:8080"):
        assert AgentAddress.parse(url).url == url
    for url in ("http://x:80/a/b", "https://x:443/v2/sandboxes/s/agent"):
        assert AgentAddress.parse(url).url == url
    assert AgentAddress.parse("https://x/a").port == 443
    for url in (
        "unix:relative",
        "https://x:1",
        "http://x",
        "ftp://x:1",
        "http://key@x:1",
        "http://x/a?b=c",
        "",
    ):
        with pytest.raises(ConfigError):
            AgentAddress.parse(url)


def test_a_missing_binary_says_how_to_get_it() -> None:
    with pytest.raises(SandboxUnavailable):
        agent_binary("sparc64")


async def test_nobody_listening_is_gone(tmp_path: Path) -> None:
    endpoint = AgentEndpoint(url=f"unix:{tmp_path}/none", token="x" * 16, sandbox_id="x")
    async with AgentClient(endpoint) as client:
        with pytest.raises(SandboxGone):
            await client.exec("echo hi")
        with pytest.raises(TimeoutError):
            await client.wait_ready(0.1)


async def test_something_else_listening_is_told(tmp_path: Path) -> None:
    async def babble(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail ready\r\n\r\n")
        await writer.drain()

    server = await asyncio.start_server(babble, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with AgentClient(
        AgentEndpoint(url=f"http://127.0.0.1:{port}", token="x", sandbox_id="x")
    ) as client:
        with pytest.raises(SandboxError, match="no agent answers"):
            await client.health()
    server.close()


@pytest.fixture
def cgroup() -> Iterator[Path]:
    """A cgroup (v2) that an agent may divide."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    root = next((Path(fields[1]) for fields in mounts if fields[2] == "cgroup2"), None)
    if root is None or not os.access(root, os.W_OK):
        pytest.skip("no cgroup v2 that may be divided")
    path = root / f"orchard-test-{os.getpid()}"
    path.mkdir()
    yield path
    for below in path.iterdir():
        if below.is_dir():
            below.rmdir()
    path.rmdir()


async def test_a_cgroup_finds_what_hides_from_all_else(launch: Launch, cgroup: Path, tmp_path: Path) -> None:
    client = await launch("--cgroup", str(cgroup))
    other = await client.start(f"while [ ! -e {tmp_path}/go ]; do sleep 0.02; done; echo spared")
    sleeper = f"sh -c 'echo $$ >>{tmp_path}/pids; exec sleep 986'"
    hiding = await client.start(f"(env -i setsid setsid {sleeper} &); {sleeper}")
    pids = await _pids(tmp_path / "pids", 2)
    await hiding.kill()
    await hiding.wait()
    assert not any(_runs(pid) for pid in pids)
    (tmp_path / "go").touch()
    assert (await other.wait()).stdout == b"spared\n"
    for _ in range(100):
        if not [path for path in cgroup.iterdir() if path.is_dir()]:
            break
        await asyncio.sleep(0.05)
    assert [path.name for path in cgroup.iterdir() if path.is_dir()] == []
