"""Commands on a terminal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from orchard_core.errors import ExecError, SandboxUnsupported
from orchard_core.sandbox.contract import Sandbox
from orchard_core.testing.suites.sandbox.base import PATIENCE_S, ShellSuiteBase
from orchard_core.types.sandbox import Capabilities, ExecResult, PtySize

_PASTE_LINES = 16_000
_LINE = b"0123456789abcdefghijklmnopqrstuvwxyz-0123456789abcdefghijklmnopqrst\n"
"""A line of a paste: 68 bytes, so that the whole has more than a mebibyte."""


class TerminalsSuite(ShellSuiteBase):
    """`start(pty=...)` gives a real terminal, where the capabilities say so."""

    @pytest_asyncio.fixture(loop_scope="class")
    async def teletype(self, sandbox: Sandbox, able: Capabilities) -> Sandbox:
        """A sandbox that gives terminals."""
        if not able.pty:
            pytest.skip("the provider gives no terminals, and says so")
        return sandbox

    async def test_a_terminal_works_where_claimed(self, sandbox: Sandbox, able: Capabilities) -> None:
        """Without the capability `start(pty=...)` raises SandboxUnsupported; with it there is a terminal."""
        command = "stty size; test -t 0 && test -t 1 && test -t 2 && echo terminal; echo err >&2"
        if not able.pty:
            with pytest.raises(SandboxUnsupported):
                await sandbox.start(command, pty=PtySize())
            return
        result = await (await sandbox.start(command, pty=PtySize(rows=30, cols=99))).wait(PATIENCE_S)
        assert result.stdout == b"30 99\r\nterminal\r\nerr\r\n"
        assert result.stderr == b""

    async def test_the_keys_of_a_terminal_are_signals(self, teletype: Sandbox) -> None:
        """Control-C is a byte on the wire and SIGINT inside: make the terminal the session's own."""
        process = await teletype.start("trap 'echo caught; exit 5' INT; echo re''ady; read x", pty=PtySize())
        await _until(process.stdout(), b"ready")
        await process.write(b"\x03")
        result = await process.wait(PATIENCE_S)
        assert (result.exit_code, b"caught" in result.stdout) == (5, True)

    async def test_a_signal_reaches_a_command_on_a_terminal(self, teletype: Sandbox) -> None:
        """`signal` means the same with a terminal as without."""
        process = await teletype.start(
            "trap 'exit 6' TERM; echo re''ady; while :; do sleep 0.05; done", pty=PtySize()
        )
        await _until(process.stdout(), b"ready")
        await process.signal(15)
        assert (await process.wait(PATIENCE_S)).exit_code == 6

    async def test_resizing_tells_the_program(self, teletype: Sandbox) -> None:
        """Full-screen programs draw anew on SIGWINCH: change the size of the terminal itself."""
        script = "trap 'stty size; exit' WINCH; echo re''ady; while :; do sleep 0.05; done"
        process = await teletype.start(script, pty=PtySize())
        await _until(process.stdout(), b"ready")
        await process.resize(PtySize(rows=50, cols=132))
        assert b"50 132" in (await process.wait(PATIENCE_S)).stdout

    async def test_resizing_without_a_terminal_is_a_typed_error(self, sandbox: Sandbox) -> None:
        """There is nothing to resize: raise ExecError."""
        process = await sandbox.start("cat")
        with pytest.raises(ExecError):
            await process.resize(PtySize())
        await process.kill()

    async def test_a_large_paste_arrives_whole(self, teletype: Sandbox) -> None:
        """A terminal takes a few kilobytes at once: wait for room and go on, while its echo is read."""
        process = await teletype.start("md5sum", pty=PtySize())
        async with asyncio.timeout(PATIENCE_S):
            await process.write(_LINE * _PASTE_LINES)
            await process.close_stdin()
        result = await process.wait(PATIENCE_S)
        plain = await teletype.exec("md5sum", stdin=_LINE * _PASTE_LINES)
        assert result.stdout.rstrip().endswith(plain.stdout.strip())

    async def test_the_tail_is_not_cut_at_the_end(self, teletype: Sandbox) -> None:
        """The command ends before all it said was read: read the terminal empty first."""
        count = "i=0; while [ $i -lt 3000 ]; do i=$((i + 1)); echo line $i; done"
        result: ExecResult = await (await teletype.start(count, pty=PtySize())).wait(PATIENCE_S)
        assert result.stdout == b"".join(b"line %d\r\n" % number for number in range(1, 3001))

    async def test_leaving_a_terminal_alone_does_not_end_its_command(self, teletype: Sandbox) -> None:
        """A reader that goes is not the end of the line: the command lives on, its output waits."""
        process = await teletype.start("echo re''ady; read x; echo got $x", pty=PtySize())
        await _until(process.stdout(), b"ready")
        await process.write(b"it\n")
        result = await process.wait(PATIENCE_S)
        assert (result.exit_code, b"ready" in result.stdout, b"got it" in result.stdout) == (0, True, True)

    async def test_killing_ends_all_that_runs_on_a_terminal(self, teletype: Sandbox) -> None:
        """Jobs have process groups of their own there: `kill` finds those too."""
        process = await teletype.start("set -m; sleep 4714 & echo pid $!; wait", pty=PtySize())
        said = await _until(process.stdout(), b"\n")
        await process.kill()
        assert (await process.wait(PATIENCE_S)).exit_code == 137
        async with asyncio.timeout(PATIENCE_S):
            while (await teletype.exec(f"kill -0 {int(said.split()[1])}")).ok:
                await asyncio.sleep(0.02)


async def _until(pieces: AsyncIterator[bytes], word: bytes) -> bytes:
    """What came until `word` did."""
    seen = b""
    async with asyncio.timeout(PATIENCE_S):
        while word not in seen:
            seen += await anext(pieces)
    return seen
