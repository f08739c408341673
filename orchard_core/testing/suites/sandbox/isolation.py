"""What must not be seen inside: the host's secrets, files and processes, and other sandboxes."""

from __future__ import annotations

import os
import secrets
import shlex
from pathlib import Path

import pytest

from orchard_core.errors import FileError, FileMissing
from orchard_core.sandbox.contract import SandboxProvider
from orchard_core.testing.suites.sandbox.base import ShellSuiteBase, eventually, need_isolation, written
from orchard_core.types.sandbox import Capabilities

_LOOK = "env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'"


class IsolationSuite(ShellSuiteBase):
    """A hostile command sees its own sandbox and nothing else."""

    async def test_the_drivers_environment_is_invisible(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """API keys live in the driver's environment: start the agent with one of its own, isolated or not."""
        secret = secrets.token_hex(16)
        monkeypatch.setenv("ORCHARD_SUITE_SECRET", secret)
        provider = await self.make_provider()
        try:
            async with await provider.create(self.with_spec()) as sandbox:
                look = _LOOK if (await provider.capabilities()).isolated else "env"
                assert secret.encode() not in (await sandbox.exec(look)).stdout
        finally:
            await provider.close()

    async def test_files_of_the_host_are_invisible(
        self, provider: SandboxProvider, able: Capabilities, tmp_path: Path
    ) -> None:
        """Homes hold keys and /tmp holds sockets: show an allow-list of the host, and neither of them."""
        need_isolation(able)
        secret = secrets.token_hex(16)
        home = Path.home() / f".orchard-suite-{secret[:8]}"
        planted = [home, tmp_path / "secret"]
        try:
            for path in planted:
                path.write_text(secret)
            async with await provider.create(self.with_spec()) as sandbox:
                for path in planted:
                    seen = await sandbox.exec(f"cat {shlex.quote(str(path))}")
                    assert secret.encode() not in seen.stdout
                    with pytest.raises(FileError):
                        await sandbox.read_bytes(str(path))
        finally:
            home.unlink(missing_ok=True)

    async def test_processes_of_the_host_are_invisible(
        self, provider: SandboxProvider, able: Capabilities
    ) -> None:
        """Who sees a process can signal it or read its memory: give a PID namespace with its own /proc."""
        need_isolation(able)
        own = Path("/proc/self/cmdline").read_bytes().split(b"\0")
        wanted = max(own, key=len)
        async with await provider.create(self.with_spec()) as sandbox:
            seen = await sandbox.exec("cat /proc/[0-9]*/cmdline | tr '\\0' '\\n'")
            assert wanted not in seen.stdout.splitlines()
            kill = await sandbox.exec(
                ["sh", "-c", f"kill -0 {os.getpid()} && cat /proc/{os.getpid()}/cmdline"]
            )
            assert wanted not in kill.stdout.split(b"\0")

    async def test_two_sandboxes_have_their_own_files(self, provider: SandboxProvider) -> None:
        """Rollouts run side by side: one's answer must not lie in the other's directory."""
        async with (
            await provider.create(self.with_spec()) as one,
            await provider.create(self.with_spec()) as two,
        ):
            assert one.id != two.id
            await one.exec("echo mine > file")
            here, there = await self.where(one), await self.where(two)
            assert await one.read_bytes(f"{here}/file") == b"mine\n"
            with pytest.raises(FileMissing):
                await two.read_bytes(f"{there}/file")
            assert not (await two.exec("cat file")).ok

    async def test_two_sandboxes_share_no_tmp_and_no_home(
        self, provider: SandboxProvider, able: Capabilities
    ) -> None:
        """Well-known paths leak between rollouts: /tmp, HOME and /dev/shm are private to each."""
        need_isolation(able)
        async with (
            await provider.create(self.with_spec()) as one,
            await provider.create(self.with_spec()) as two,
        ):
            await one.exec("for d in /tmp $HOME /dev/shm /var/tmp; do echo mine > $d/orchard-probe; done")
            seen = await two.exec(
                "cat /tmp/orchard-probe $HOME/orchard-probe /dev/shm/orchard-probe /var/tmp/orchard-probe"
            )
            assert seen.stdout == b""
        assert not Path("/tmp/orchard-probe").exists()

    async def test_two_sandboxes_do_not_see_each_others_processes(
        self, provider: SandboxProvider, able: Capabilities
    ) -> None:
        """One agent must not kill or watch another's: separate PID namespaces."""
        need_isolation(able)
        async with (
            await provider.create(self.with_spec()) as one,
            await provider.create(self.with_spec()) as two,
        ):
            mark = secrets.randbelow(10**6) + 1000
            await one.exec(f"sh -c 'echo x > up; exec sleep {mark}' &")
            assert await eventually(lambda: written(one, "up"))
            seen = await two.exec("cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
            assert f"sleep {mark}".encode() not in seen.stdout

    async def test_the_hosts_files_cannot_be_changed(
        self, provider: SandboxProvider, able: Capabilities
    ) -> None:
        """Writes inside stay inside, root or not: overlays over what is shown, or read-only."""
        need_isolation(able)
        async with await provider.create(self.with_spec()) as sandbox:
            name = f"orchard-suite-{secrets.token_hex(4)}"
            for place in ("/usr/bin", "/etc", "/usr/lib"):
                await sandbox.exec(f"echo x > {place}/{name}")
                assert not (Path(place) / name).exists()

    async def test_pid_1_and_the_agent_cannot_be_read(
        self, provider: SandboxProvider, able: Capabilities
    ) -> None:
        """The agent's memory holds the token: it must not be dumpable by commands inside."""
        need_isolation(able)
        async with await provider.create(self.with_spec()) as sandbox:
            parent = "p=$(awk '/^PPid/{print $2}' /proc/$$/status); head -c 1 /proc/$p/mem /proc/$p/environ"
            seen = await sandbox.exec(parent)
            assert seen.stdout.replace(b"\n", b"").count(b"\0") == 0
            assert not seen.ok
