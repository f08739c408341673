"""Terminals: what is typed and shown, and when a command ends with its client."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from orchard_core.errors import ExecError, SandboxError, SandboxUnsupported, StdinClosed
from orchard_core.sandbox.agent import AgentClient, AgentProcess, AgentTerminal
from orchard_core.types.sandbox import PtySize

from .conftest import Launch

PATIENCE_S = 30.0


async def until(source: AgentTerminal, word: bytes) -> bytes:
    """What was shown until `word` was."""
    seen = b""
    async with asyncio.timeout(PATIENCE_S):
        while word not in seen:
            piece = await source.read()
            assert piece, seen
            seen += piece
    return seen


async def shown(agent: AgentClient, process: AgentProcess, word: bytes) -> int:
    """The cursor once `word` was shown; it must not stand in what was typed."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            output = await agent.run_output(process.id)
            if word in output.data:
                return output.cursor
            await asyncio.sleep(0.01)


async def test_a_command_has_a_terminal_of_the_size_given(agent: AgentClient) -> None:
    script = "tty; stty size; test -t 0 -a -t 1 -a -t 2 && echo all three; echo ${TERM:+named}; echo err >&2"
    process = await agent.start(script, pty=PtySize(rows=33, cols=101))
    result = await process.wait(PATIENCE_S)
    lines = result.stdout.split(b"\r\n")
    assert lines[0].startswith(b"/dev/pts/")
    assert lines[1:] == [b"33 101", b"all three", b"named", b"err", b""]
    assert result.stderr == b""


async def test_it_is_the_controlling_terminal_and_keys_are_signals(agent: AgentClient) -> None:
    process = await agent.start(
        "trap 'echo caught; exit 5' INT; true </dev/tty && echo re''ady; while :; do sleep 0.05; done",
        pty=PtySize(),
    )
    await shown(agent, process, b"ready")
    await process.write(b"\x03")
    result = await process.wait(PATIENCE_S)
    assert result.exit_code == 5
    assert b"caught" in result.stdout


async def test_a_signal_with_a_key_reaches_what_is_in_front_and_others_the_command(
    agent: AgentClient,
) -> None:
    front = "trap 'echo front; exit' INT; echo on; while :; do sleep 0.05; done"
    script = f'set -m; trap "echo shell" TERM; sh -c "{front}"; echo then; read y'
    process = await agent.start(script, pty=PtySize())
    await shown(agent, process, b"on")
    await process.signal(2)
    await shown(agent, process, b"then")
    await process.signal(15)
    await process.write(b"\n")
    output = (await process.wait(PATIENCE_S)).stdout
    assert b"front" in output
    assert b"shell" in output


async def test_resizing_tells_the_program(agent: AgentClient) -> None:
    script = "trap 'stty size; exit' WINCH; echo re''ady; while :; do sleep 0.05; done"
    process = await agent.start(script, pty=PtySize())
    await shown(agent, process, b"ready")
    await process.resize(PtySize(rows=50, cols=132))
    assert b"50 132" in (await process.wait(PATIENCE_S)).stdout
    await process.resize(PtySize(rows=10, cols=10))


async def test_without_a_terminal_there_is_nothing_to_resize_join_or_hang_up(agent: AgentClient) -> None:
    process = await agent.start(["cat"])
    for call in (process.resize(PtySize()), process.hang_up(), agent.terminal(process.id)):
        with pytest.raises(ExecError, match="no terminal"):
            await call
    await process.kill()


async def test_a_conversation_through_one_connection(agent: AgentClient) -> None:
    process = await agent.start(["sh"], env={"PS1": "> "}, pty=PtySize())
    async with await agent.terminal(process.id) as terminal:
        await until(terminal, b"> ")
        await terminal.write(b"echo $((40 + 2))\n")
        await until(terminal, b"42\r\n> ")
        await terminal.write(b"exit 7\n")
        while await terminal.read():
            pass
    assert (await process.wait(PATIENCE_S)).exit_code == 7


async def test_a_large_paste_arrives_whole_while_it_is_echoed(agent: AgentClient) -> None:
    line = b"x" * 1000 + b"\n"
    process = await agent.start("wc -c", pty=PtySize(), output_limit=8 << 20)
    async with await agent.terminal(process.id) as terminal:
        writing = asyncio.create_task(terminal.write(line * 1100 + b"\x04"))
        await until(terminal, b"1101100\r\n")  # of the echo before it the kernel drops what is too much
        await writing


async def test_a_large_paste_by_the_cursor_calls_arrives_whole(agent: AgentClient) -> None:
    process = await agent.start("stty raw -echo; echo re''ady; head -c 1100000 | cksum", pty=PtySize())
    await shown(agent, process, b"ready")
    paste = bytes(range(256)) * 4297
    await asyncio.wait_for(process.write(paste[:1100000]), PATIENCE_S)
    said = (await process.wait(PATIENCE_S)).stdout
    plain = await agent.exec("cksum", stdin=paste[:1100000])
    assert plain.stdout.strip() in said


async def test_a_paste_that_nobody_reads_does_not_hang_the_agent(agent: AgentClient) -> None:
    process = await agent.start("stty raw -echo; echo re''ady; sleep 1000", pty=PtySize())
    await shown(agent, process, b"ready")
    pasting = asyncio.create_task(process.write(b"x" * 1_000_000))
    await asyncio.sleep(0.2)
    assert (await agent.exec(["echo", "alive"])).stdout == b"alive\n"
    assert not pasting.done()
    await process.kill()
    with pytest.raises(StdinClosed):
        await asyncio.wait_for(pasting, PATIENCE_S)


async def test_the_tail_is_never_cut(agent: AgentClient) -> None:
    for _ in range(10):
        process = await agent.start(["seq", "1", "20000"], pty=PtySize())
        output = (await process.wait(PATIENCE_S)).stdout
        assert output == b"".join(b"%d\r\n" % number for number in range(1, 20001))


async def test_the_tail_comes_through_the_connection_too(agent: AgentClient) -> None:
    process = await agent.start(["seq", "1", "30000"], pty=PtySize())
    async with await agent.terminal(process.id) as terminal:
        seen = b"".join([piece async for piece in terminal])
    assert seen == b"".join(b"%d\r\n" % number for number in range(1, 30001))


async def test_closing_the_input_types_the_end_of_it(agent: AgentClient) -> None:
    for typed, lines in ((b"", 0), (b"whole\n", 1), (b"whole\nhalf", 1)):
        process = await agent.start("stty -echo; echo re''ady; cat | wc -cl", pty=PtySize())
        await shown(agent, process, b"ready")
        await process.write(typed)
        await process.close_stdin()
        counts = (await process.wait(PATIENCE_S)).stdout.split(b"ready")[1].split()
        assert counts == [b"%d" % lines, b"%d" % len(typed)]


async def test_a_plain_start_lives_on_when_its_client_leaves_and_can_be_joined_again(
    agent: AgentClient,
) -> None:
    process = await agent.start("echo re''ady; read a; echo got $a", pty=PtySize())
    async with AgentClient(agent.endpoint) as other, await other.terminal(process.id) as terminal:
        await until(terminal, b"ready")
    cursor = await shown(agent, process, b"ready")
    async with await agent.terminal(process.id, cursor=cursor) as terminal:
        await terminal.write(b"it\n")
        assert b"ready" not in await until(terminal, b"got it")
    assert (await process.wait(PATIENCE_S)).exit_code == 0


async def test_a_command_that_was_told_to_ends_with_its_client(agent: AgentClient) -> None:
    process = await agent.start("echo re''ady; sleep 1000", pty=PtySize())
    terminal = await agent.terminal(process.id, hang_up=True)
    await until(terminal, b"ready")
    await terminal.close()
    assert (await process.wait(PATIENCE_S)).exit_code == 129


async def test_one_that_ignores_the_hang_up_is_killed_with_its_children(agent: AgentClient) -> None:
    script = "trap '' HUP; setsid sleep 4713 & echo child $!; sleep 1000; sleep 1000"
    process = await agent.start(script, pty=PtySize())
    terminal = await agent.terminal(process.id, hang_up=True, grace_s=0)
    seen = await until(terminal, b"\n")
    await terminal.close()
    assert (await process.wait(PATIENCE_S)).exit_code == 137
    child = int(seen.split()[1])
    async with asyncio.timeout(PATIENCE_S):
        while (await agent.exec(f"kill -0 {child}")).ok:  # dead, and not yet reaped
            await asyncio.sleep(0.01)


async def test_a_client_that_leaves_behind_a_paste_that_nobody_reads_has_left(agent: AgentClient) -> None:
    process = await agent.start("stty raw -echo; echo re''ady; sleep 1000", pty=PtySize())
    terminal = await agent.terminal(process.id, hang_up=True)
    await until(terminal, b"ready")
    pasting = asyncio.create_task(terminal.write(b"x" * 5_000_000))
    await asyncio.sleep(0.2)
    pasting.cancel()
    terminal.abort()
    assert (await process.wait(PATIENCE_S)).exit_code == 129


async def test_hanging_up_ends_the_session_and_repeats_do_no_harm(agent: AgentClient) -> None:
    process = await agent.start("sleep 1000 | cat", pty=PtySize())
    await process.hang_up()
    await process.hang_up()
    assert (await process.wait(PATIENCE_S)).exit_code == 129
    assert (await agent.health()).running == 0


async def test_a_background_child_that_holds_the_terminal_does_not_hold_the_end(agent: AgentClient) -> None:
    process = await agent.start("trap '' HUP; sleep 1000 & echo last words", pty=PtySize())
    assert (await process.wait(PATIENCE_S)).stdout == b"last words\r\n"


async def test_a_time_out_ends_a_terminal_with_all_that_runs_in_it(agent: AgentClient) -> None:
    process = await agent.start("trap '' HUP; sleep 1000 & echo words; wait", pty=PtySize(), timeout=0.5)
    result = await process.wait(PATIENCE_S)
    assert (result.timed_out, result.stdout) == (True, b"words\r\n")


async def test_terminals_leak_nothing(agent: AgentClient) -> None:
    before = Path(f"/proc/{(await agent.health()).pid}/fd")
    held = len(list(before.iterdir()))
    for _ in range(20):
        process = await agent.start(["true"], pty=PtySize())
        async with await agent.terminal(process.id, hang_up=True) as terminal:
            while await terminal.read():
                pass
        await process.wait(PATIENCE_S)
    async with asyncio.timeout(PATIENCE_S):
        while len(list(before.iterdir())) > held + 2:
            await asyncio.sleep(0.05)


async def test_a_terminal_waits_for_its_turn_too(agent: AgentClient, tmp_path: Path) -> None:
    await agent.begin(f"until [ -e {tmp_path}/gate ]; do sleep 0.01; done", lane="v1")
    process = await agent.start("read a; echo got $a", lane="v1", pty=PtySize())
    async with await agent.terminal(process.id) as terminal:
        await terminal.write(b"it\n")
        (tmp_path / "gate").touch()
        await until(terminal, b"got it")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else: run it as root")
async def test_a_terminal_belongs_to_the_user_of_its_command(launch: Launch) -> None:
    agent = await launch("--drop-to", "65534:65534")
    script = "id -u; echo by name > $(tty); stat -c %u $(tty); read x < $(tty); echo got $x"
    process = await agent.start(script, cwd="/", pty=PtySize())
    await process.write(b"it\n")
    output = (await process.wait(PATIENCE_S)).stdout
    assert output.replace(b"it\r\n", b"", 1) == b"65534\r\nby name\r\n65534\r\ngot it\r\n"


async def test_an_image_without_terminals_says_so(launch: Launch, confine: Callable[..., list[str]]) -> None:
    agent = await launch(
        prefix=confine("--tmpfs", "/dev", "--dev-bind", "/dev/null", "/dev/null"),
        agent="/agent",
        directory="/sockets",
    )
    with pytest.raises(SandboxUnsupported, match="devpts"):
        await agent.start(["true"], pty=PtySize())
    assert (await agent.exec(["echo", "still"])).stdout == b"still\n"


async def test_a_confined_agent_gives_terminals(launch: Launch, confine: Callable[..., list[str]]) -> None:
    agent = await launch(prefix=confine(), agent="/agent", directory="/sockets")
    process = await agent.start("stty size; ps -o tty= $$ || true", pty=PtySize(rows=5, cols=6))
    assert (await process.wait(PATIENCE_S)).stdout.startswith(b"5 6\r\n")


@pytest.mark.parametrize("size", [PtySize(rows=0), PtySize(cols=0), PtySize(rows=70000)])
async def test_a_size_that_no_terminal_has_is_refused(agent: AgentClient, size: PtySize) -> None:
    with pytest.raises(SandboxError, match="1 to 65535 rows"):
        await agent.start(["true"], pty=size)
