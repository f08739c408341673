"""How commands end: codes, signals, time-outs, background children, zombies. Field faults 1, 2, 7, 12."""

from __future__ import annotations

import asyncio

import pytest

from orchard_core.sandbox.contract import Sandbox
from orchard_core.testing.suites.sandbox.base import PATIENCE_S, ShellSuiteBase, eventually, runs, written

SLEEPER = "sh -c 'echo $$ > pid; exec sleep 300'"
"""Leaves its process id in the file `pid` and stays."""


class EndingSuite(ShellSuiteBase):
    """The end of a command is told exactly, and a time-out leaves nothing behind."""

    @pytest.mark.parametrize("code", [0, 1, 2, 124, 125, 126, 137, 255])
    async def test_exit_codes_arrive_as_they_are(self, sandbox: Sandbox, code: int) -> None:
        """Exiting 124 or 137 by oneself is no time-out: set `timed_out` from the killer alone."""
        result = await sandbox.exec(f"exit {code}", timeout=PATIENCE_S)
        assert result.exit_code == code
        assert not result.timed_out
        assert result.limit_s is None

    @pytest.mark.parametrize(("name", "code"), [("TERM", 143), ("KILL", 137), ("ABRT", 134), ("HUP", 129)])
    async def test_a_signal_is_128_plus_its_number(self, sandbox: Sandbox, name: str, code: int) -> None:
        """Callers tell a crash from a failure by 128 + n: translate the wait status, not a language's -n."""
        result = await sandbox.exec(f"kill -{name} $$", timeout=PATIENCE_S)
        assert result.exit_code == code
        assert not result.timed_out

    async def test_an_argv_command_ended_by_a_signal_tells_it(self, sandbox: Sandbox) -> None:
        """Without a shell between, the wait status itself must be translated to 128 + n."""
        result = await sandbox.exec(["sh", "-c", "kill -SEGV $$"], timeout=PATIENCE_S)
        assert result.exit_code == 128 + 11

    async def test_a_timeout_is_a_flag_that_names_its_limit(self, sandbox: Sandbox) -> None:
        """Who reads the result must know which limit fired: set `timed_out` and `limit_s`."""
        result = await sandbox.exec("sleep 300", timeout=0.5)
        assert result.timed_out
        assert result.limit_s == 0.5
        assert not result.ok

    async def test_a_timeout_keeps_the_output_until_then(self, sandbox: Sandbox) -> None:
        """The last lines before a hang tell its cause: return what was written, do not raise."""
        result = await sandbox.exec("echo before; echo warned >&2; sleep 300", timeout=1)
        assert result.timed_out
        assert (result.stdout, result.stderr) == (b"before\n", b"warned\n")

    @pytest.mark.parametrize(
        "command",
        [
            f"{SLEEPER} & wait",
            f"{SLEEPER}; true",
            f"trap '' TERM INT HUP; {SLEEPER}; true",
            f"( ( {SLEEPER} ) & ) & sleep 300",
            f"{SLEEPER} | cat",
        ],
        ids=["background", "foreground", "deaf to signals", "orphaned", "in a pipe"],
    )
    async def test_a_timeout_kills_the_whole_tree(self, sandbox: Sandbox, command: str) -> None:
        """A child left behind eats the machine and changes files: kill the tree, not only the shell."""
        await _time_out(sandbox, command)
        assert await _gone(sandbox), "the child outlived the time-out"

    @pytest.mark.parametrize("env", ["", "env -i PATH=$PATH "], ids=["plain", "empty environment"])
    async def test_a_timeout_kills_a_child_that_left_its_session(self, sandbox: Sandbox, env: str) -> None:
        """`setsid` leaves the process group: find the child by cgroup or as a subreaper, and kill it."""
        if not (await sandbox.exec("command -v setsid")).ok:
            pytest.skip("the image has no setsid")
        await _time_out(sandbox, f"{env}setsid {SLEEPER} & sleep 300")
        assert await _gone(sandbox), "the child that left its session outlived the time-out"

    async def test_the_next_command_works_after_a_timeout(self, sandbox: Sandbox) -> None:
        """A time-out must not take the agent with it: signal the command's own session only."""
        await sandbox.exec("kill -STOP $$; sleep 300", timeout=0.5)
        assert (await sandbox.exec("echo next", timeout=PATIENCE_S)).stdout == b"next\n"
        assert await sandbox.alive()

    async def test_a_timeout_leaves_other_commands_alone(self, sandbox: Sandbox) -> None:
        """Commands run side by side: the tree that is killed is one command's tree."""
        other = await sandbox.start(SLEEPER)
        assert await eventually(lambda: written(sandbox, "pid"))
        assert (await sandbox.exec("sleep 300", timeout=0.5)).timed_out
        assert await runs(sandbox, "pid")
        await other.signal(9)
        await other.wait(PATIENCE_S)

    async def test_a_background_child_does_not_hold_the_call(self, sandbox: Sandbox) -> None:
        """A server started with `&` keeps stdout open: return when the shell exits, not at end of file."""
        async with asyncio.timeout(PATIENCE_S):
            result = await sandbox.exec("sleep 300 & echo hi")
        assert result.stdout == b"hi\n"
        assert result.exit_code == 0

    async def test_a_background_child_lives_on(self, sandbox: Sandbox) -> None:
        """A server started by one command is used by the next: a normal end kills nothing."""
        await sandbox.exec(f"{SLEEPER} &", timeout=PATIENCE_S)
        assert await eventually(lambda: written(sandbox, "pid"))
        assert await runs(sandbox, "pid")

    async def test_orphans_are_reaped(self, sandbox: Sandbox) -> None:
        """Zombies fill the process table: the agent must reap what is handed to it as PID 1 or subreaper."""
        orphan = "orphan-q7"
        await sandbox.exec(f"printf '#!/bin/sh\\n:\\n' > {orphan}; chmod +x {orphan}")
        await sandbox.exec(f"for i in 1 2 3 4 5 6 7 8; do ( ./{orphan} & ) ; done", timeout=PATIENCE_S)
        count = f"cat /proc/[0-9]*/stat 2>/dev/null | grep -c '({orphan}) Z'"

        async def none() -> bool:
            return (await sandbox.exec(count)).stdout.strip() == b"0"

        assert await eventually(none), "zombies are left"


async def _time_out(sandbox: Sandbox, command: str) -> None:
    """Let a command run into its limit; a longer one where a busy machine had not started its child."""
    for limit in (0.6, 3, 15):
        assert (await sandbox.exec(command, timeout=limit)).timed_out
        if await written(sandbox, "pid"):
            return
    pytest.fail("the child never started")


async def _gone(sandbox: Sandbox) -> bool:
    async def gone() -> bool:
        return not await runs(sandbox, "pid")

    return await eventually(gone, within_s=3)
