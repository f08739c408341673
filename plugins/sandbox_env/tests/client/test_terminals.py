"""Programs on a terminal, by both faces."""

from __future__ import annotations

import signal

import pytest
from orchard_env import AsyncSandboxInstance, ContainerProcess, SandboxInstance

from orchard_core import ExecError

from ..service.running import GENEROUS_S


def test_a_program_sees_a_terminal_and_its_size(sandbox: SandboxInstance) -> None:
    with sandbox.exec("tty -s && stty size; exit 7", pty=True, rows=31, cols=97) as process:
        assert isinstance(process, ContainerProcess)
        assert b"31 97" in process.read_all(GENEROUS_S)
        assert process.wait(GENEROUS_S) == 7
        assert (process.poll(), process.returncode) == (7, 7)
        assert process.pid


def test_what_is_typed_is_read_and_answered(sandbox: SandboxInstance) -> None:
    with sandbox.exec(["cat"], pty=True) as process:
        process.write_stdin(b"ping\n")
        said = b""
        while b"ping\r\nping" not in said:
            said += process.read(GENEROUS_S)
        process.kill("INT")
        assert process.wait(GENEROUS_S) == 128 + signal.SIGINT


def test_a_large_paste_arrives_whole_while_nobody_reads(sandbox: SandboxInstance) -> None:
    lines = "".join(f"{number:060}\n" for number in range(20_000))
    with sandbox.exec("stty -echo; echo ready; wc -c; exit 0", pty=True) as process:
        said = b""
        while b"ready" not in said:
            said += process.read(GENEROUS_S)
        process.write_stdin(lines)
        process.write_stdin("\x04")
        assert str(len(lines)).encode() in process.read_all(GENEROUS_S)


def test_the_tail_of_the_output_is_not_cut(sandbox: SandboxInstance) -> None:
    with sandbox.exec("seq 1 50000; echo THE END", pty=True) as process:
        said = process.read_all(GENEROUS_S)
    assert said.endswith(b"50000\r\nTHE END\r\n")
    assert said.startswith(b"1\r\n2\r\n")


def test_a_resize_reaches_the_program(sandbox: SandboxInstance) -> None:
    script = "trap 'stty size; exit 0' WINCH; echo ready; while :; do sleep 0.05; done"
    with sandbox.exec(["bash", "-c", script], pty=True) as process:
        said = b""
        while b"ready" not in said:
            said += process.read(GENEROUS_S)
        process.resize(50, 120)
        assert b"50 120" in process.read_all(GENEROUS_S)


def test_waiting_has_an_end_and_the_program_goes_on(sandbox: SandboxInstance) -> None:
    with sandbox.exec(["cat"], pty=True) as process:
        with pytest.raises(TimeoutError):
            process.wait(0.05)
        with pytest.raises(TimeoutError):
            process.read(0.05)
        assert process.poll() is None
        process.kill()
        assert process.wait(GENEROUS_S) == 128 + signal.SIGTERM


def test_a_program_that_is_not_there_is_a_typed_error(sandbox: SandboxInstance) -> None:
    with pytest.raises(ExecError):
        sandbox.exec(["no-such-program-anywhere"], pty=True).wait(GENEROUS_S)


def test_hanging_up_ends_the_program(sandbox: SandboxInstance) -> None:
    process = sandbox.exec("echo $$ > shell.pid; echo ready; exec cat", pty=True)
    said = b""
    while b"ready" not in said:
        said += process.read(GENEROUS_S)
    process.close()
    process.close()
    gone = "for i in $(seq 600); do kill -0 $(cat shell.pid) 2>/dev/null || exit 0; sleep 0.1; done; exit 1"
    assert sandbox.exec(gone).succeeded


async def test_the_asynchronous_face_has_them_too(asandbox: AsyncSandboxInstance) -> None:
    async with await asandbox.exec("read x; echo got $x", pty=True, env={"A": "b"}) as process:
        await process.write_stdin("word\n")
        assert b"got word" in await process.read_all(GENEROUS_S)
        assert await process.wait(GENEROUS_S) == 0
