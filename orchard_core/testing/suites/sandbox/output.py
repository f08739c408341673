"""What commands write: exact bytes, bounded memory, separate streams. Field fault 4."""

from __future__ import annotations

import asyncio

from orchard_core.sandbox.contract import Sandbox
from orchard_core.testing.suites.sandbox.base import PATIENCE_S, ShellSuiteBase

EVERY_BYTE = bytes(range(256))


class OutputSuite(ShellSuiteBase):
    """No byte of output is lost, added or changed without a word."""

    async def test_stdout_and_stderr_are_kept_apart(self, sandbox: Sandbox) -> None:
        """Graders parse stdout: never merge the two streams."""
        result = await sandbox.exec("echo out; echo err >&2")
        assert (result.stdout, result.stderr) == (b"out\n", b"err\n")

    async def test_every_byte_value_arrives_unchanged(self, sandbox: Sandbox, place: str) -> None:
        """Output is bytes, not text: nothing on the way may decode it."""
        await sandbox.write(f"{place}/bytes", EVERY_BYTE)
        result = await sandbox.exec("cat bytes; cat bytes >&2")
        assert result.stdout == EVERY_BYTE
        assert result.stderr == EVERY_BYTE
        assert "�" in result.text

    async def test_output_without_a_last_newline_is_whole(self, sandbox: Sandbox) -> None:
        """Line-wise readers lose the last line: copy bytes instead."""
        assert (await sandbox.exec("printf 'a\\nb'")).stdout == b"a\nb"

    async def test_a_split_character_is_whole_again(self, sandbox: Sandbox) -> None:
        """A euro sign written in two pieces must not turn to two question marks: decode only the whole."""
        result = await sandbox.exec("printf '\\342'; sleep 0.2; printf '\\202\\254'")
        assert result.stdout_text == "€"

    async def test_a_streamed_split_character_is_whole_again(self, sandbox: Sandbox) -> None:
        """Pieces of a stream are bytes cut anywhere: joined they are the output, whatever the cuts."""
        process = await sandbox.start(
            "printf '\\342'; sleep 0.2; printf '\\202\\254'; printf bad >&2; exit 3"
        )
        assert b"".join([piece async for piece in process.stdout()]).decode() == "€"
        assert b"".join([piece async for piece in process.stderr()]) == b"bad"
        assert (await process.wait(PATIENCE_S)).exit_code == 3

    async def test_a_streamed_piece_arrives_before_the_end(self, sandbox: Sandbox) -> None:
        """Who watches a build wants its lines while it runs: do not wait for the end to send."""
        process = await sandbox.start("echo first; cat; echo last")
        pieces = process.stdout()
        async with asyncio.timeout(PATIENCE_S):
            assert (await anext(pieces)).startswith(b"first")
        await process.close_stdin()
        assert b"".join([piece async for piece in pieces]).endswith(b"last\n")

    async def test_small_output_is_not_truncated(self, sandbox: Sandbox) -> None:
        """Sizes are told for every command: they equal the bytes when nothing is cut."""
        result = await sandbox.exec("echo four; printf e >&2")
        assert (result.stdout_size, result.stderr_size, result.truncated) == (5, 1, False)

    async def test_huge_output_keeps_head_tail_and_true_size(self, sandbox: Sandbox) -> None:
        """50 MB must not fill the driver's memory: cut the middle, set the flag, tell the true size."""
        result = await sandbox.exec(
            "echo begin; dd if=/dev/zero bs=1000000 count=50 2>/dev/null; echo end", timeout=120
        )
        assert result.ok
        assert result.stdout_size == 50_000_010
        assert result.stdout_truncated
        assert result.truncated
        assert not result.stderr_truncated
        assert len(result.stdout) < 40_000_000
        assert result.stdout.startswith(b"begin\n")
        assert result.stdout.endswith(b"end\n")

    async def test_huge_errors_are_cut_alike(self, sandbox: Sandbox) -> None:
        """Standard error has the same cap and its own flag."""
        result = await sandbox.exec(
            "( echo begin; dd if=/dev/zero bs=1000000 count=50 2>/dev/null; echo end ) >&2; echo out",
            timeout=120,
        )
        assert result.stderr_truncated
        assert result.stderr_size == 50_000_010
        assert result.stderr.endswith(b"end\n")
        assert (result.stdout, result.stdout_truncated) == (b"out\n", False)

    async def test_commands_side_by_side_keep_their_own_output(self, sandbox: Sandbox) -> None:
        """Twenty commands at once must not mix their bytes: one spool each."""
        results = await asyncio.gather(*(sandbox.exec(f"echo {n}; echo {n} >&2") for n in range(20)))
        assert [result.stdout for result in results] == [f"{n}\n".encode() for n in range(20)]
        assert [result.stderr for result in results] == [f"{n}\n".encode() for n in range(20)]
