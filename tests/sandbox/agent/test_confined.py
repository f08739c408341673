"""The agent as PID 1: read-only root, no shell, no root rights."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Awaitable, Callable

import pytest

from orchard_core.errors import NoShell, UserUnknown
from orchard_core.sandbox.agent import AgentClient

Launch = Callable[..., Awaitable[AgentClient]]
Confine = Callable[..., list[str]]
PLACE = {"agent": "/agent", "directory": "/sockets"}


async def test_an_image_with_nothing_in_it_runs_argv(launch: Launch, scratch: list[str]) -> None:
    client = await launch(prefix=scratch, **PLACE)
    assert (await client.health()).pid == 1
    assert (await client.exec(["/agent", "--version"])).stdout == b"1\n"
    with pytest.raises(NoShell, match="argv"):
        await client.exec("echo hi")
    assert {entry.name for entry in await client.list("/")} >= {"agent", "proc"}


async def test_an_image_without_dev_or_proc_runs_argv(launch: Launch, scratch: list[str]) -> None:
    bare = [word for word in scratch if word not in ("--proc", "/proc", "--dev", "/dev")]
    client = await launch(prefix=bare, **PLACE)
    result = await client.exec(["/agent", "--version"], timeout=10)
    assert (result.exit_code, result.stdout) == (0, b"1\n")
    assert (await client.metrics()).rss_bytes == -1
    await client.kill_all()


async def test_a_read_only_root_takes_large_scripts_and_outputs(launch: Launch, confine: Confine) -> None:
    client = await launch(prefix=confine(), **PLACE)
    assert (await client.exec("touch /file")).exit_code == 1
    assert (await client.exec("#" + "x" * 500_000 + "\necho big")).stdout == b"big\n"
    result = await client.exec("printf HEAD; head -c 20000000 /dev/zero; printf TAIL")
    assert result.truncated or result.stdout_size == len(result.stdout)
    assert result.stdout_size == 20_000_008
    assert result.stdout.startswith(b"HEAD\0")
    assert result.stdout.endswith(b"\0TAIL")
    assert (await client.metrics()).rss_bytes < 30e6


async def test_a_user_without_rights_is_served_and_refused_others(launch: Launch, confine: Confine) -> None:
    prefix = confine("--uid", "1000", "--gid", "1000", "--tmpfs", "/tmp")
    client = await launch(prefix=prefix, **PLACE)
    assert (await client.exec(["id", "-u"])).stdout == b"1000\n"
    await client.write("/tmp/a/b", b"mine")
    assert await client.read_bytes("/tmp/a/b") == b"mine"
    with pytest.raises(UserUnknown, match="cannot become"):
        await client.exec("id", user="0")


async def test_pid_1_reaps(launch: Launch, confine: Confine) -> None:
    client = await launch(prefix=confine(), **PLACE)
    for _ in range(10):
        await client.exec("(setsid sh -c 'sleep 0.05' &); (sleep 0.05 &)")
    await asyncio.sleep(0.5)
    result = await client.exec("cat /proc/[0-9]*/stat | grep -c ' Z '")
    assert result.stdout == b"0\n"


async def test_a_time_out_leaves_nothing_but_pid_1(launch: Launch, confine: Confine) -> None:
    client = await launch(prefix=confine(), **PLACE)
    script = "sleep 100 & setsid sleep 100 & (env -i setsid setsid sleep 100 &); kill -TERM -1; sleep 100"
    await client.exec(f"sh -c 'trap : TERM; {script}'", timeout=0.5)
    result = await client.exec("ls -d /proc/[0-9]*")
    assert len(result.stdout.split()) == 2, result.text


async def test_kill_all_leaves_only_the_agent(launch: Launch, confine: Confine) -> None:
    client = await launch(prefix=confine(), **PLACE)
    process = await client.start("sleep 100 & setsid sleep 100 & sleep 100")
    await asyncio.sleep(0.2)
    await client.kill_all()
    assert (await process.wait(5)).exit_code == 137
    result = await client.exec("ls -d /proc/[0-9]*")
    assert len(result.stdout.split()) == 2, result.text


async def test_a_command_inside_cannot_reach_the_token(launch: Launch, confine: Confine) -> None:
    client = await launch(prefix=confine(), **PLACE)
    result = await client.exec(
        "readlink /proc/1/fd/0 /proc/1/fd/3; cat /proc/1/environ; head -c 1 /proc/1/mem"
    )
    assert result.stdout == b""
    assert result.stderr_text.count("ermission denied") == 2


async def test_a_command_inside_cannot_end_the_agent(launch: Launch, confine: Confine) -> None:
    client = await launch("--ignore-term", prefix=confine(), **PLACE)
    sent = await client.exec("for number in $(seq 1 64); do kill -$number 1 || exit; done; echo all")
    assert sent.stdout == b"all\n"
    assert (await client.exec("echo alive")).stdout == b"alive\n"


async def test_an_agent_among_other_processes_outlives_every_signal_that_can_be_taken(
    launch: Launch, processes: list[subprocess.Popen[bytes]]
) -> None:
    client = await launch("--ignore-term")
    c_library = {32, 34}  # its own, and the Go runtime leaves them to it; only as process 1 are they harmless
    for number in set(range(1, 65)) - {signal.SIGKILL, signal.SIGSTOP} - c_library:
        processes[0].send_signal(number)
        assert (await client.exec("echo alive", timeout=20)).stdout == b"alive\n", number


async def test_loopback_is_up_in_a_network_of_its_own(launch: Launch, confine: Confine) -> None:
    client = await launch(prefix=confine(), **PLACE)
    assert (await client.exec("cat /sys/class/net/lo/flags || cat /proc/net/dev")).exit_code == 0
    tunnel = await client.tunnel("/no/such/socket")
    assert tunnel.address.host == "127.0.0.1"


async def test_root_with_every_capability_still_cannot_look_in(launch: Launch, confine: Confine) -> None:
    if os.geteuid():
        pytest.skip("needs root outside")
    prefix = [part for part in confine("--cap-add", "ALL") if part not in ("--cap-drop",)]
    prefix.remove("ALL")
    client = await launch(prefix=prefix, **PLACE)
    result = await client.exec("readlink /proc/1/fd/*; cat /proc/1/environ; head -c 1 /proc/1/mem")
    assert result.stdout == b"", result.text
