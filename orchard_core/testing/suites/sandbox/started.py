"""Commands that are started and handled while they run."""

from __future__ import annotations

import asyncio

import pytest

from orchard_core.errors import ExecError
from orchard_core.sandbox.contract import Sandbox
from orchard_core.testing.suites.sandbox.base import PATIENCE_S, ShellSuiteBase


class StartedSuite(ShellSuiteBase):
    """`start` gives a handle that feeds, signals and waits."""

    async def test_stdin_can_be_fed_piece_by_piece(self, sandbox: Sandbox) -> None:
        """Interactive programs answer each line: deliver writes at once, in order."""
        process = await sandbox.start("while read line; do echo got $line; done; echo end")
        answers = process.stdout()
        async with asyncio.timeout(PATIENCE_S):
            for word in ("one", "two"):
                await process.write(f"{word}\n".encode())
                assert await anext(answers) == f"got {word}\n".encode()
        await process.close_stdin()
        assert (await process.wait(PATIENCE_S)).stdout.endswith(b"end\n")

    async def test_writing_to_a_closed_stdin_is_a_typed_error(self, sandbox: Sandbox) -> None:
        """Bytes that cannot arrive must not vanish: raise ExecError."""
        process = await sandbox.start("cat")
        await process.close_stdin()
        await process.wait(PATIENCE_S)
        with pytest.raises(ExecError):
            await process.write(b"late")

    async def test_a_signal_reaches_the_group(self, sandbox: Sandbox) -> None:
        """Ctrl-C must reach a pipeline's members: signal the process group."""
        process = await sandbox.start(
            "trap 'echo caught; exit 7' INT; echo ready; while :; do sleep 0.1; done"
        )
        await anext(process.stdout())
        await process.signal(2)
        result = await process.wait(PATIENCE_S)
        assert (result.exit_code, result.stdout) == (7, b"ready\ncaught\n")

    async def test_a_signal_after_the_end_does_nothing(self, sandbox: Sandbox) -> None:
        """The end and the signal race: a signal that comes late is no error and hits nobody else."""
        process = await sandbox.start("true")
        await process.wait(PATIENCE_S)
        await process.signal(15)
        assert (await process.wait(PATIENCE_S)).exit_code == 0
        assert await sandbox.alive()

    async def test_killing_ends_the_children_that_left_the_group_too(self, sandbox: Sandbox) -> None:
        """Programs start helpers in sessions of their own: `kill` finds those as well."""
        process = await sandbox.start("setsid sleep 4712 & echo $!; wait")
        child = int(await anext(process.stdout()))
        await process.kill()
        assert (await process.wait(PATIENCE_S)).exit_code == 137
        async with asyncio.timeout(PATIENCE_S):
            while (await sandbox.exec(f"kill -0 {child}")).ok:
                await asyncio.sleep(0.02)

    async def test_waiting_may_time_out_and_the_command_lives_on(self, sandbox: Sandbox) -> None:
        """A wait is not a limit: raise TimeoutError and leave the command alone."""
        process = await sandbox.start("cat; echo lived")
        with pytest.raises(TimeoutError):
            await process.wait(0.2)
        await process.close_stdin()
        assert (await process.wait(PATIENCE_S)).stdout == b"lived\n"

    async def test_a_started_command_has_its_limit_too(self, sandbox: Sandbox) -> None:
        """`timeout` of start ends the tree as in exec, whether or not anyone waits."""
        process = await sandbox.start("echo begun; sleep 300", timeout=0.5)
        result = await process.wait(PATIENCE_S)
        assert (result.timed_out, result.limit_s, result.stdout) == (True, 0.5, b"begun\n")

    async def test_two_waits_give_the_same_result(self, sandbox: Sandbox) -> None:
        """The result belongs to the run, not to the first who asks."""
        process = await sandbox.start("echo once; exit 4")
        first, second = await asyncio.gather(process.wait(PATIENCE_S), process.wait(PATIENCE_S))
        assert first == second
        assert (await process.wait(PATIENCE_S)).exit_code == 4

    async def test_output_can_be_read_after_the_end(self, sandbox: Sandbox) -> None:
        """Output waits in its spool: a reader that comes late misses nothing."""
        process = await sandbox.start("echo out; echo err >&2")
        await process.wait(PATIENCE_S)
        assert b"".join([piece async for piece in process.stdout()]) == b"out\n"
        assert b"".join([piece async for piece in process.stderr()]) == b"err\n"

    async def test_every_run_has_its_own_id(self, sandbox: Sandbox) -> None:
        """At most once rests on the id: no two runs may share one."""
        runs = [await sandbox.start("true") for _ in range(5)]
        assert len({run.id for run in runs}) == 5
