"""What commands are given: argv, environment, stdin, working directory, user. Field faults 5, 6, 8 to 11."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator

import pytest

from orchard_core.errors import (
    CommandNotFound,
    CwdMissing,
    ExecError,
    NoShell,
    SandboxUnsupported,
    UserUnknown,
)
from orchard_core.sandbox.contract import Sandbox
from orchard_core.testing.suites.sandbox.base import PATIENCE_S, SandboxSuiteBase, ShellSuiteBase
from orchard_core.types.sandbox import Capabilities

ODD_VALUES = {
    "plain": "value",
    "empty": "",
    "newlines": "a\nb\n\n",
    "quotes": 'it\'s "quoted" \\ back',
    "substitution": "$(touch hacked) `touch hacked` ${HOME} $HOME",
    "unicode": "héllo ☃ 漢字",
    "not utf-8": os.fsdecode(b"caf\xe9\xff"),
    "equals": "a=b=c",
    "blanks": "  leading and trailing  ",
    "globs": "* ? [a-z] ~",
}
"""Values that break where a shell or a decoder stands between."""


class ArgvSuite(SandboxSuiteBase):
    """argv works in any image, and never meets a shell."""

    @pytest.mark.parametrize("value", ODD_VALUES.values(), ids=ODD_VALUES.keys())
    async def test_argv_stays_argv(self, sandbox: Sandbox, value: str) -> None:
        """Joining arguments with blanks splits and executes them: hand the list to exec as it is."""
        result = await sandbox.exec([*self.echo, value, "after"], timeout=PATIENCE_S)
        assert result.stdout == os.fsencode(value) + b"\nafter\n"

    async def test_a_missing_command_is_a_typed_error(self, sandbox: Sandbox) -> None:
        """An exit code 127 cannot be told from the command's own: raise CommandNotFound."""
        with pytest.raises(CommandNotFound):
            await sandbox.exec(["no-such-command-anywhere"])
        with pytest.raises(CommandNotFound):
            await sandbox.exec(["/no/such/path"])
        assert (await sandbox.exec([*self.echo, "still here"])).ok

    async def test_a_missing_working_directory_is_a_typed_error(self, sandbox: Sandbox) -> None:
        """Falling back to `/` runs `rm -rf *` in the wrong place: raise CwdMissing, run nothing."""
        with pytest.raises(CwdMissing):
            await sandbox.exec([*self.echo, "x"], cwd="/no/such/directory")
        with pytest.raises(CwdMissing):
            await sandbox.start([*self.echo, "x"], cwd="/no/such/directory")

    async def test_a_file_for_a_working_directory_is_a_typed_error(
        self, sandbox: Sandbox, place: str
    ) -> None:
        """What is no directory cannot be entered: raise CwdMissing."""
        await sandbox.write(f"{place}/file", b"")
        with pytest.raises(CwdMissing):
            await sandbox.exec([*self.echo, "x"], cwd=f"{place}/file")

    async def test_a_shell_string_without_a_shell_says_so(self, sandbox: Sandbox) -> None:
        """A scratch image has no /bin/sh: raise NoShell, whose hint is to pass argv."""
        if self.has_shell:
            pytest.skip("the image has a shell")
        with pytest.raises(NoShell):
            await sandbox.exec("echo hi")

    async def test_an_unknown_user_is_a_typed_error(self, sandbox: Sandbox) -> None:
        """Running as somebody else than asked is a hole: raise UserUnknown, run nothing."""
        with pytest.raises((UserUnknown, SandboxUnsupported)):
            await sandbox.exec([*self.echo, "x"], user="no-such-user-here")

    async def test_a_long_argument_is_passed_whole(self, sandbox: Sandbox) -> None:
        """100 KiB fit one argument on Linux: nothing on the way may cut it."""
        result = await sandbox.exec([*self.echo, "a" * 100_000])
        assert result.stdout == b"a" * 100_000 + b"\n"

    async def test_too_long_an_argument_is_refused_not_cut(self, sandbox: Sandbox) -> None:
        """Above the kernel's limit there is no way: raise an ExecError instead of running something else."""
        try:
            result = await sandbox.exec([*self.echo, "a" * (1 << 20)])
        except ExecError:
            return
        assert result.stdout_size == (1 << 20) + 1


class GivenSuite(ShellSuiteBase):
    """What a caller gives arrives byte for byte."""

    @pytest.mark.parametrize("value", ODD_VALUES.values(), ids=ODD_VALUES.keys())
    async def test_environment_values_are_byte_equal(self, sandbox: Sandbox, place: str, value: str) -> None:
        """Values written into a script break or execute: pass the environment to exec itself."""
        result = await sandbox.exec('printf %s "$VALUE"', env={"VALUE": value})
        assert result.stdout == os.fsencode(value)
        assert "hacked" not in [entry.name for entry in await sandbox.list(place)]

    async def test_environment_of_one_command_is_not_that_of_the_next(self, sandbox: Sandbox) -> None:
        """Commands do not share a shell: nothing but files carries over."""
        await sandbox.exec("export LEFT=1; cd /; true", env={"GIVEN": "1"})
        assert (await sandbox.exec('printf %s "$LEFT$GIVEN"')).stdout == b""

    async def test_stdin_is_empty_unless_given(self, sandbox: Sandbox) -> None:
        """`cat` must not hang on the agent's own stdin: give /dev/null."""
        async with asyncio.timeout(PATIENCE_S):
            result = await sandbox.exec("cat; echo end")
        assert result.stdout == b"end\n"

    async def test_stdin_bytes_arrive_exactly(self, sandbox: Sandbox) -> None:
        """stdin is bytes too: no decoding, no added newline."""
        data = bytes(range(256)) * 3
        assert (await sandbox.exec("cat", stdin=data)).stdout == data
        assert (await sandbox.exec("cat; echo end", stdin=b"")).stdout == b"end\n"

    async def test_a_large_stdin_is_not_cut(self, sandbox: Sandbox, place: str) -> None:
        """20 MB go through a pipe of 64 KiB: stream them, and let none be lost."""
        data = os.urandom(1 << 20) * 20
        assert (await sandbox.exec("cat > big", stdin=data, timeout=120)).ok
        seen = hashlib.sha256()
        async for piece in sandbox.read(f"{place}/big"):
            seen.update(piece)
        assert seen.digest() == hashlib.sha256(data).digest()

    async def test_a_streamed_stdin_arrives_whole(self, sandbox: Sandbox) -> None:
        """A generator feeds what never fits in memory: take it piece by piece."""

        async def pieces() -> AsyncIterator[bytes]:
            for number in range(1000):
                yield f"{number}\n".encode()

        result = await sandbox.exec("cat", stdin=pieces())
        assert result.stdout == "".join(f"{number}\n" for number in range(1000)).encode()

    async def test_an_unread_stdin_is_no_error(self, sandbox: Sandbox) -> None:
        """`head -1` ends before it has read all: a broken pipe is not the caller's matter."""
        async with asyncio.timeout(PATIENCE_S):
            assert (await sandbox.exec("echo done", stdin=b"x" * (8 << 20))).stdout == b"done\n"

    async def test_a_command_of_a_mebibyte_runs(self, sandbox: Sandbox) -> None:
        """Linux allows 128 KiB an argument: a shell string must travel by file or stdin, not on argv."""
        result = await sandbox.exec(f"x={'a' * (1 << 20)}; echo ${{#x}}", timeout=PATIENCE_S)
        assert result.stdout == b"1048576\n"

    async def test_a_long_command_leaves_stdin_free(self, sandbox: Sandbox) -> None:
        """A script that travels by stdin must not swallow the caller's."""
        assert (await sandbox.exec(f"cat; : {'a' * 200_000}", stdin=b"mine")).stdout == b"mine"

    async def test_a_command_of_many_lines_runs_as_written(self, sandbox: Sandbox) -> None:
        """Here-documents, quotes and comments are the shell's matter: pass the text unchanged."""
        script = "cat <<'END'\n$HOME `x` \\ \"q\"\nEND\n# a comment\nprintf '%s' \"it's\"\n"
        assert (await sandbox.exec(script)).stdout == b'$HOME `x` \\ "q"\nit\'s'

    async def test_the_working_directory_is_the_one_asked_for(self, sandbox: Sandbox, place: str) -> None:
        """Commands start where the caller says, the spec's workdir otherwise."""
        await sandbox.mkdir(f"{place}/a b")
        assert (await sandbox.exec("pwd -P", cwd=f"{place}/a b")).stdout == f"{place}/a b\n".encode()
        assert (await sandbox.exec("pwd -P")).stdout == f"{place}\n".encode()

    async def test_a_file_that_may_not_run_is_a_typed_error(self, sandbox: Sandbox, place: str) -> None:
        """Mode 644 cannot be executed: raise CommandNotFound, as for a missing one."""
        await sandbox.write(f"{place}/script", b"#!/bin/sh\necho hi\n", mode=0o644)
        with pytest.raises(CommandNotFound):
            await sandbox.exec([f"{place}/script"])

    async def test_home_and_tmp_are_writable(self, sandbox: Sandbox) -> None:
        """Tools keep caches in HOME and files in TMPDIR: both must exist and take a file."""
        result = await sandbox.exec(': > "$HOME/probe" && : > "${TMPDIR:-/tmp}/probe" && echo ok')
        assert result.stdout == b"ok\n", result.text

    async def test_other_users_work_where_claimed(self, sandbox: Sandbox, able: Capabilities) -> None:
        """`capabilities().users` promises any user: run as the one asked for."""
        if not able.users:
            pytest.skip("the provider runs commands as one user, and says so")
        assert (await sandbox.exec("id -u", user="12345")).stdout == b"12345\n"
