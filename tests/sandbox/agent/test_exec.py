"""Commands: what users of such systems have seen go wrong, and the right behaviour."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from orchard_core.errors import (
    CommandNotFound,
    ConfigError,
    CwdMissing,
    ExecError,
    ExecForgotten,
    NoShell,
    UserUnknown,
)
from orchard_core.sandbox.agent import AgentClient, new_run_id

Launch = Callable[..., Awaitable[AgentClient]]


def running(mark: str) -> list[str]:
    """Command lines of living processes that hold the mark."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue
        if mark in line:
            found.append(line)
    return found


def seconds() -> str:
    """A sleep long enough, and unlike any other on this machine."""
    return f"{1000 + int.from_bytes(os.urandom(3), 'big')}.{os.getpid()}"


async def test_a_result_has_exit_code_and_both_outputs(agent: AgentClient) -> None:
    result = await agent.exec("echo out; echo err >&2; exit 3")
    assert (result.exit_code, result.stdout, result.stderr) == (3, b"out\n", b"err\n")
    assert not result.timed_out
    assert result.limit_s is None


async def test_a_time_out_ends_the_whole_tree_and_keeps_the_output(agent: AgentClient) -> None:
    a, b, c, d = seconds(), seconds(), seconds(), seconds()
    script = f"echo before; sleep {a} & setsid sleep {b} & (setsid setsid sleep {c} &) ; sleep {d}"
    result = await agent.exec(script, timeout=0.4)
    assert result.timed_out
    assert result.limit_s == 0.4
    assert result.stdout == b"before\n"
    assert [running(mark) for mark in (a, b, c, d)] == [[], [], [], []]
    assert (await agent.exec("echo next")).stdout == b"next\n"


async def test_a_time_out_finds_a_daemon_that_cleared_its_environment(agent: AgentClient) -> None:
    mark = seconds()
    result = await agent.exec(f"(env -i setsid setsid sleep {mark} &); sleep {mark}", timeout=0.4)
    assert result.timed_out
    assert running(mark) == []


async def test_a_time_out_ends_a_command_that_ignores_signals(agent: AgentClient) -> None:
    mark = seconds()
    result = await agent.exec(f"trap '' TERM INT HUP; while :; do sleep {mark}; done", timeout=0.3)
    assert result.timed_out
    assert running(mark) == []


async def test_a_time_out_of_one_command_spares_the_others(agent: AgentClient) -> None:
    other = asyncio.create_task(agent.exec("sleep 1; echo spared"))
    assert (await agent.exec("sleep 60", timeout=0.3)).timed_out
    assert (await other).stdout == b"spared\n"


async def test_a_background_child_does_not_hold_the_call_and_lives_on(agent: AgentClient) -> None:
    mark = seconds()
    result = await agent.exec(f"sleep {mark} & echo hi")
    assert result.stdout == b"hi\n"
    assert len(running(mark)) == 1
    await agent.kill_all()
    assert running(mark) == []


async def test_a_chatty_background_child_does_not_die_of_a_closed_pipe(
    agent: AgentClient, tmp_path: Path
) -> None:
    script = "(for i in 1 2 3 4 5 6; do sleep 0.1; echo more; done; touch survived) & echo hi"
    result = await agent.exec(script, cwd=str(tmp_path))
    assert result.stdout == b"hi\n"
    await asyncio.sleep(1.2)
    assert (tmp_path / "survived").exists()


async def test_a_repeated_id_attaches(agent: AgentClient, tmp_path: Path) -> None:
    run = new_run_id()
    script = "echo ran >> count; echo done"
    first = await agent.exec(script, cwd=str(tmp_path), run_id=run)
    again = await agent.exec(script, cwd=str(tmp_path), run_id=run)
    assert first == again
    assert (tmp_path / "count").read_text() == "ran\n"


async def test_the_same_id_at_the_same_time_runs_once(agent: AgentClient, tmp_path: Path) -> None:
    run = new_run_id()
    script = "echo ran >> count; sleep 0.2; echo done"
    results = await asyncio.gather(*(agent.exec(script, cwd=str(tmp_path), run_id=run) for _ in range(20)))
    assert len(set(results)) == 1
    assert (tmp_path / "count").read_text() == "ran\n"


async def test_an_id_is_never_lent_to_another_command(agent: AgentClient) -> None:
    run = new_run_id()
    await agent.exec("echo one", run_id=run)
    with pytest.raises(ExecError, match="another command"):
        await agent.exec("echo two", run_id=run)


async def test_a_forgotten_run_is_never_run_again(agent: AgentClient, tmp_path: Path) -> None:
    run = new_run_id()
    script = "echo ran >> count"
    await agent.exec(script, cwd=str(tmp_path), run_id=run)
    for _ in range(300):
        await agent.exec(["true"])
    with pytest.raises(ExecForgotten):
        await agent.exec(script, cwd=str(tmp_path), run_id=run)
    assert (tmp_path / "count").read_text() == "ran\n"


async def test_every_byte_value_comes_back(agent: AgentClient) -> None:
    every = bytes(range(256)) * 64
    assert (await agent.exec(["cat"], stdin=every)).stdout == every


async def test_text_views_decode_whole_characters(agent: AgentClient) -> None:
    result = await agent.exec("printf '\\303'; sleep 0.1; printf '\\251\\377'")
    assert result.stdout_text == "é\ufffd"


async def test_fifty_megabytes_keep_head_and_tail_and_cost_no_memory(agent: AgentClient) -> None:
    script = "printf HEAD; head -c 52428800 /dev/zero; printf TAIL"
    result = await agent.exec(script, output_limit=1 << 20)
    assert result.stdout_truncated
    assert result.stdout_size == 52428800 + 8
    assert len(result.stdout) == 1 << 20
    assert result.stdout.startswith(b"HEAD\0")
    assert result.stdout.endswith(b"\0TAIL")
    assert (await agent.metrics()).rss_bytes < 30e6


async def test_output_up_to_the_limit_is_whole(agent: AgentClient) -> None:
    result = await agent.exec("seq 1 500000")
    assert result.stdout == b"".join(b"%d\n" % n for n in range(1, 500001))
    assert not result.truncated


@pytest.mark.parametrize("size", [1000, 100_000, 131_072, 1_000_000])
async def test_a_script_of_any_size_runs_whole(agent: AgentClient, size: int) -> None:
    script = f"x='{'a' * size}'\necho ${{#x}} $0 $#\n"
    result = await agent.exec(script)
    assert result.stdout.split()[0] == str(size).encode()
    assert result.stdout.split()[2] == b"0"


@pytest.mark.parametrize("command", ["echo a\0b", ["echo", "a\0b"]], ids=["shell", "argv"])
async def test_a_nul_byte_is_an_error_of_the_command_not_of_the_sandbox(
    agent: AgentClient, command: str | list[str]
) -> None:
    with pytest.raises(ExecError, match="NUL byte"):
        await agent.exec(command)


async def test_a_large_argument_is_refused_with_a_reason(agent: AgentClient) -> None:
    with pytest.raises(ExecError, match="128 KiB"):
        await agent.exec(["echo", "a" * 200_000])


@pytest.mark.parametrize("size", [0, 1, 65_536, 262_144, 262_145, 20_000_000])
async def test_stdin_of_any_size_arrives(agent: AgentClient, size: int) -> None:
    assert (await agent.exec(["wc", "-c"], stdin=b"z" * size)).stdout.strip() == str(size).encode()


async def test_stdin_may_be_a_stream(agent: AgentClient) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for n in range(100):
            yield b"%d\n" % n

    assert (await agent.exec("tail -n 1", stdin=pieces())).stdout == b"99\n"


async def test_a_command_may_stop_reading_its_stdin(agent: AgentClient) -> None:
    result = await agent.exec("head -c 3", stdin=b"abc" * 5_000_000)
    assert result.stdout == b"abc"


async def test_a_missing_cwd_is_an_error(agent: AgentClient, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for cwd in (tmp_path / "missing", tmp_path / "file"):
        with pytest.raises(CwdMissing):
            await agent.exec("pwd", cwd=str(cwd))


@pytest.mark.parametrize("code", [0, 1, 124, 125, 137, 255])
async def test_an_exit_code_is_the_commands_own(agent: AgentClient, code: int) -> None:
    result = await agent.exec(f"exit {code}", timeout=20)
    assert (result.exit_code, result.timed_out) == (code, False)


@pytest.mark.parametrize("number", [6, 9, 11, 15])
async def test_a_signal_is_128_and_its_number(agent: AgentClient, number: int) -> None:
    result = await agent.exec(f"kill -{number} $$", timeout=20)
    assert (result.exit_code, result.timed_out) == (128 + number, False)


async def test_argv_stays_argv(agent: AgentClient) -> None:
    words = ["a b", "", "$(id)", "'\"\\", "new\nline", "*", "\udcff\udc00x".replace("\udc00", "\udcfe")]
    result = await agent.exec(["printf", "%s\\0", *words])
    assert result.stdout == b"".join(os.fsencode(word) + b"\0" for word in words)


async def test_environment_values_are_bytes_and_meet_no_shell(agent: AgentClient) -> None:
    value = "line\nquote\"'`id`$(id)${HOME}\\ \udcff=é"
    result = await agent.exec(["printenv", "ODD"], env={"ODD": value})
    assert result.stdout == os.fsencode(value) + b"\n"


async def test_stdin_is_empty_unless_given(agent: AgentClient) -> None:
    result = await agent.exec(["cat"], timeout=10)
    assert (result.exit_code, result.stdout, result.timed_out) == (0, b"", False)


async def test_a_missing_program_is_an_error(agent: AgentClient, tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("no program")
    for name in ("no-such-program", "/no/such", str(tmp_path / "plain"), str(tmp_path)):
        with pytest.raises(CommandNotFound):
            await agent.exec([name])
    assert (await agent.exec("no-such-program")).exit_code == 127


async def test_no_zombie_stays(agent: AgentClient) -> None:
    for _ in range(20):
        await agent.exec("for i in 1 2 3; do (sleep 0.02 &); done")
    await asyncio.sleep(0.3)
    me = (await agent.health()).pid
    states = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = path.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if int(parent) == me:
            states.append(state)
    assert states == []
    assert (await agent.metrics()).orphans_collected >= 60


async def test_two_hundred_commands_at_once(agent: AgentClient) -> None:
    results = await asyncio.gather(*(agent.exec(["echo", str(n)]) for n in range(200)))
    assert [int(result.stdout) for result in results] == list(range(200))


async def test_cancelling_the_call_ends_the_command(agent: AgentClient) -> None:
    mark = seconds()
    call = asyncio.create_task(agent.exec(["sleep", mark]))
    while not running(mark):
        await asyncio.sleep(0.01)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert running(mark) == []


async def test_a_started_command_streams_and_takes_input(agent: AgentClient) -> None:
    process = await agent.start("while read line; do echo got $line; done; echo end >&2; exit 5")
    out = process.stdout()
    for word in (b"one", b"two"):
        await process.write(word + b"\n")
        assert await anext(out) == b"got " + word + b"\n"
    await process.close_stdin()
    assert [piece async for piece in out] == []
    assert b"".join([piece async for piece in process.stderr()]) == b"end\n"
    assert (await process.wait()).exit_code == 5
    await process.close_stdin()
    with pytest.raises(ExecError):
        await process.write(b"too late")


async def test_a_started_command_is_signalled_and_waited_for(agent: AgentClient) -> None:
    process = await agent.start(["sleep", "60"])
    with pytest.raises(TimeoutError):
        await process.wait(0.2)
    await process.signal(15)
    assert (await process.wait(5)).exit_code == 143
    await process.signal(15)


async def test_a_started_command_is_found_by_its_id(agent: AgentClient) -> None:
    process = await agent.start("echo hello; sleep 0.2")
    other = await agent.attach(process.id)
    assert (await other.wait()).stdout == b"hello\n"
    with pytest.raises(ExecError):
        await agent.attach(new_run_id())


async def test_a_slow_reader_gets_all_of_a_large_output(agent: AgentClient) -> None:
    process = await agent.start("head -c 30000000 /dev/zero", output_limit=1 << 28)
    total = 0
    async for piece in process.stdout():
        total += len(piece)
    assert total == 30_000_000


async def test_a_user_is_taken_on(agent: AgentClient) -> None:
    if os.geteuid():
        pytest.skip("only root may become another user")
    result = await agent.exec("id -u; id -g; echo $HOME", user="12345:54321")
    assert result.stdout.split()[:2] == [b"12345", b"54321"]
    named = await agent.exec("id -un", user="nobody")
    assert named.stdout == b"nobody\n"
    with pytest.raises(UserUnknown):
        await agent.exec("id", user="no-such-user")


async def test_a_command_cannot_read_the_token(
    agent: AgentClient, processes: list[subprocess.Popen[bytes]]
) -> None:
    pid = processes[0].pid
    script = f"readlink /proc/{pid}/fd/*; head -c 1 /proc/{pid}/mem"
    result = await agent.exec(script)
    assert result.stdout == b""
    assert "Permission denied" in result.stderr_text
    # Only root may narrow its bounding set; anybody else has no capability to begin with.
    held = "CapPrm" if os.geteuid() else "CapBnd"
    status = await agent.exec(["grep", held, "/proc/self/status"])
    assert int(status.stdout.split()[1], 16) >> 19 & 1 == 0


async def test_a_command_inherits_no_file(agent: AgentClient) -> None:
    result = await agent.exec(["ls", "/proc/self/fd"])
    assert result.stdout.split() == [b"0", b"1", b"2", b"3"]  # 3 is ls reading the directory


async def test_a_missing_shell_by_name_is_an_error(launch: Launch, scratch: list[str]) -> None:
    client = await launch(prefix=scratch, agent="/agent", directory="/sockets")
    with pytest.raises(NoShell):
        await client.exec("echo hi")


async def test_a_time_out_beyond_any_clock_is_no_time_out(agent: AgentClient) -> None:
    result = await agent.exec("sleep 0.05; echo done", timeout=1e300)
    assert (result.timed_out, result.stdout) == (False, b"done\n")


@pytest.mark.parametrize("timeout", [float("nan"), float("inf"), 0.0, -1.0])
async def test_a_time_out_that_is_no_time_is_refused(agent: AgentClient, timeout: float) -> None:
    with pytest.raises(ConfigError, match="time-out"):
        await agent.exec("echo hi", timeout=timeout)


@pytest.mark.parametrize("command", ["echo \ud800", ["echo", "\ud800"]])
async def test_half_of_a_surrogate_pair_is_the_commands_mistake(
    agent: AgentClient, command: str | list[str]
) -> None:
    with pytest.raises(ExecError, match="surrogate"):
        await agent.exec(command)
