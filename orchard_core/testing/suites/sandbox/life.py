"""Creation, capabilities, life span and end."""

from __future__ import annotations

import asyncio
import re
import secrets
from pathlib import Path

import pytest

from orchard_core.errors import AgentRefused, SandboxGone, SandboxUnsupported
from orchard_core.sandbox.contract import Sandbox, SandboxProvider
from orchard_core.testing.suites.sandbox.agent_http import ask
from orchard_core.testing.suites.sandbox.base import (
    PATIENCE_S,
    SandboxSuiteBase,
    ShellSuiteBase,
    eventually,
    written,
)
from orchard_core.types.sandbox import Capabilities, FileInput, ImageRef, Network, NetworkMode

_IMAGES = {"host": "", "rootfs": "/no/such/rootfs", "oci": "example.test/none", "build": "/no/such/dir"}


class LifeSuite(SandboxSuiteBase):
    """A sandbox is what its spec says, as long as it says, and leaves nothing."""

    async def test_it_is_what_the_contract_names(
        self, provider: SandboxProvider, sandbox: Sandbox, able: Capabilities
    ) -> None:
        """Callers rely on every method and property: implement the whole contract."""
        assert isinstance(provider, SandboxProvider)
        assert isinstance(sandbox, Sandbox)
        assert re.fullmatch(r"[A-Za-z0-9._-]+", sandbox.id)
        assert sandbox.capabilities == able
        assert re.fullmatch(r"[a-z0-9][a-z0-9-]*", provider.name)

    async def test_files_of_the_spec_are_there_before_anything_runs(
        self, provider: SandboxProvider, able: Capabilities, tmp_path: Path
    ) -> None:
        """Tasks bring their files: write them, with their modes, before create returns."""
        home = self.with_spec().workdir if able.isolated else str(tmp_path)
        spec = self.with_spec(
            files=(
                FileInput(path=f"{home}/given/data", content=bytes(range(256))),
                FileInput(path=f"{home}/given/run", content=b"#!/bin/sh\necho ran\n", mode=0o755),
            )
        )
        async with await provider.create(spec) as sandbox:
            assert await sandbox.read_bytes(f"{home}/given/data") == bytes(range(256))
            assert (await sandbox.stat(f"{home}/given/run")).mode == 0o755

    @pytest.mark.parametrize("kind", _IMAGES)
    async def test_an_image_kind_that_is_not_claimed_is_refused(
        self, provider: SandboxProvider, able: Capabilities, kind: str
    ) -> None:
        """Running a task in another image than it names spoils its score: raise SandboxUnsupported."""
        image = ImageRef.model_validate({"kind": kind, "value": _IMAGES[kind]})
        if image.kind in able.images:
            pytest.skip(f"the provider takes {kind} images")
        with pytest.raises(SandboxUnsupported):
            await provider.create(self.with_spec().model_copy(update={"image": image}))

    @pytest.mark.parametrize("mode", list(NetworkMode))
    async def test_a_network_that_is_not_claimed_is_refused(
        self, provider: SandboxProvider, able: Capabilities, mode: NetworkMode
    ) -> None:
        """A policy that nobody enforces is a hole: raise SandboxUnsupported instead of giving another."""
        if mode in able.networks:
            pytest.skip(f"the provider enforces {mode.value}")
        if mode is NetworkMode.NONE and not able.isolated:
            pytest.skip("the provider does not isolate, and says so")
        with pytest.raises(SandboxUnsupported):
            await provider.create(self.with_spec(network=Network(mode=mode)))

    async def test_snapshots_and_forks_are_as_claimed(
        self, provider: SandboxProvider, sandbox: Sandbox, able: Capabilities, place: str
    ) -> None:
        """What is claimed works and what is not raises SandboxUnsupported: never an empty copy."""
        await sandbox.write(f"{place}/file", b"before")
        if not able.snapshot:
            with pytest.raises(SandboxUnsupported):
                await sandbox.snapshot()
        else:
            saved = await sandbox.snapshot()
            await sandbox.write(f"{place}/file", b"after")
            async with await provider.create(self.with_spec(), restore=saved) as restored:
                where = await self.where(restored)
                assert await restored.read_bytes(f"{where}/file") == b"before"
        await sandbox.write(f"{place}/file", b"forked")
        if not able.fork:
            with pytest.raises(SandboxUnsupported):
                await sandbox.fork(1)
            return
        one, two = await sandbox.fork(2)
        async with one, two:
            await one.write(f"{await self.where(one)}/file", b"changed")
            assert await two.read_bytes(f"{await self.where(two)}/file") == b"forked"
            assert await sandbox.read_bytes(f"{place}/file") == b"forked"

    async def test_closing_may_be_repeated_and_ends_everything(self, sandbox: Sandbox, place: str) -> None:
        """Error paths close twice: never raise, and let later calls say SandboxGone."""
        assert await sandbox.alive()
        for _ in range(3):
            await sandbox.close()
        assert not await sandbox.alive()
        with pytest.raises(SandboxGone):
            await sandbox.exec([*self.echo, "late"])
        with pytest.raises(SandboxGone):
            await sandbox.write(f"{place}/late", b"")
        with pytest.raises(SandboxGone):
            await sandbox.read_bytes(f"{place}/late")

    async def test_leaving_the_context_closes(self, provider: SandboxProvider) -> None:
        """`async with` is how sandboxes are held: close on the way out, after an error too."""
        with pytest.raises(RuntimeError, match="the caller broke"):
            async with await provider.create(self.with_spec()) as sandbox:
                raise RuntimeError("the caller broke")
        assert not await sandbox.alive()

    async def test_closing_the_provider_closes_its_sandboxes(self) -> None:
        """A driver that ends must leave nothing behind: destroy every sandbox that still lives."""
        provider = await self.make_provider()
        made = [await provider.create(self.with_spec()) for _ in range(2)]
        await provider.close()
        assert [await sandbox.alive() for sandbox in made] == [False, False]

    async def test_a_sandbox_dies_at_the_end_of_its_life_span(self, provider: SandboxProvider) -> None:
        """A forgotten sandbox costs for ever: destroy it after `ttl_s`, whoever uses it."""
        sandbox = await provider.create(self.with_spec(ttl_s=self.ttl_s))
        assert await eventually(lambda: _dead(sandbox))
        with pytest.raises(SandboxGone):
            await sandbox.exec([*self.echo, "late"])
        await sandbox.close()

    async def test_an_idle_sandbox_dies(self, provider: SandboxProvider) -> None:
        """A crashed client sends nothing: destroy after `idle_ttl_s` without a call."""
        sandbox = await provider.create(self.with_spec(idle_ttl_s=self.ttl_s))
        await asyncio.sleep(self.ttl_s * 2)
        assert await eventually(lambda: _dead(sandbox))
        await sandbox.close()

    async def test_many_are_made_at_once(self, provider: SandboxProvider) -> None:
        """Rollouts start together: creation must not depend on order or share names."""
        made = await asyncio.gather(*(provider.create(self.with_spec()) for _ in range(8)))
        try:
            results = await asyncio.gather(*(one.exec([*self.echo, one.id]) for one in made))
            assert [result.stdout for result in results] == [f"{one.id}\n".encode() for one in made]
            assert len({one.id for one in made}) == 8
        finally:
            await asyncio.gather(*(one.close() for one in made))


class ProcessLifeSuite(ShellSuiteBase):
    """The end of a sandbox, or of everything in it."""

    async def test_the_environment_of_the_spec_is_that_of_commands(self, provider: SandboxProvider) -> None:
        """Images rely on variables: the spec's reach every command, and a command's own go before."""
        spec = self.with_spec(env={"GIVEN": "spec", "KEPT": "a\n'b' $c"})
        async with await provider.create(spec) as sandbox:
            seen = await sandbox.exec('printf "%s|%s" "$GIVEN" "$KEPT"', env={"GIVEN": "command"})
            assert seen.stdout == b"command|a\n'b' $c"

    async def test_closing_leaves_no_process(self, provider: SandboxProvider) -> None:
        """Children that outlive their sandbox fill the host: kill all of them, daemons too."""
        mark = f"sleep\0{secrets.randbelow(10**6) + 1_000_000}\0".encode()
        argument = mark.split(b"\0")[1].decode()
        sandbox = await provider.create(self.with_spec())
        await sandbox.exec(f"( sleep {argument} & ) ; sleep 0.3")  # until the child is what its name says
        await sandbox.close()

        async def gone() -> bool:
            return not _on_this_host(mark)

        assert await eventually(gone, within_s=3)

    async def test_a_reset_kills_everything_and_keeps_the_files(self, sandbox: Sandbox, place: str) -> None:
        """A verifier in the agent's sandbox must not meet its daemons: kill all, keep files, work on."""
        mark = secrets.token_hex(8)
        command = f"mark={mark}; trap '' TERM HUP INT; echo kept > file; while :; do sleep 1; done"
        await sandbox.start(f"setsid sh -c {_quoted(command)} || sh -c {_quoted(command)}")
        assert await eventually(lambda: written(sandbox, "file"))
        # By its words: a fresh namespace counts its processes from the beginning again.
        look = f"grep -l 'mark=[{mark[0]}]{mark[1:]}' /proc/[0-9]*/cmdline 2>/dev/null"
        assert (await sandbox.exec(look)).stdout
        await sandbox.reset_processes()
        assert (await sandbox.exec(look)).stdout == b""
        assert await sandbox.read_bytes(f"{place}/file") == b"kept\n"
        assert (await sandbox.exec("echo on")).stdout == b"on\n"
        assert await sandbox.alive()

    async def test_a_reset_revokes_the_old_token(self, sandbox: Sandbox) -> None:
        """The agent's programs may hold the old endpoint: a new agent answers to a new token only."""
        self.need_agent()
        old = await sandbox.endpoint()
        assert (await ask(old, "GET", "/v1/health")).status == 200
        await sandbox.reset_processes()
        new = await sandbox.endpoint()
        assert new.token != old.token
        assert (await ask(new, "GET", "/v1/health")).status == 200
        try:
            status = (await ask(new, "GET", "/v1/health", token=old.token)).status
        except (OSError, AgentRefused):
            return
        assert status == 401


class LimitsSuite(ShellSuiteBase):
    """A limit that is claimed is enforced."""

    async def test_claimed_memory_limits_are_enforced(
        self, provider: SandboxProvider, able: Capabilities
    ) -> None:
        """A runaway program takes the host down: `limits['memory']` must stop it, and only it."""
        _need_limit(able, "memory")
        async with await provider.create(self.with_spec(memory_mb=128)) as sandbox:
            result = await sandbox.exec("dd if=/dev/zero of=/dev/null bs=512M count=1", timeout=PATIENCE_S)
            assert not result.ok
            assert (await sandbox.exec("echo on")).stdout == b"on\n"

    async def test_claimed_process_limits_are_enforced(
        self, provider: SandboxProvider, able: Capabilities
    ) -> None:
        """A fork bomb takes the host down: `limits['pids']` must stop it, and only it."""
        _need_limit(able, "pids")
        async with await provider.create(self.with_spec(pids=48)) as sandbox:
            bomb = "n=0; while [ $n -lt 120 ]; do sleep 100 & n=$((n+1)); done; echo all"
            result = await sandbox.exec(bomb, timeout=8)  # some shells try again and again
            assert b"all" not in result.stdout
            await sandbox.reset_processes()
            assert (await sandbox.exec("echo on")).stdout == b"on\n"

    async def test_claimed_disk_limits_are_enforced(
        self, provider: SandboxProvider, able: Capabilities
    ) -> None:
        """A log that grows for ever fills the host: `limits['disk']` must stop it."""
        _need_limit(able, "disk")
        async with await provider.create(self.with_spec(disk_mb=16)) as sandbox:
            result = await sandbox.exec("dd if=/dev/zero of=big bs=1000000 count=64", timeout=PATIENCE_S)
            assert not result.ok


async def _dead(sandbox: Sandbox) -> bool:
    return not await sandbox.alive()


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _on_this_host(mark: bytes) -> bool:
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cmdline").read_bytes() == mark:
                return True
        except OSError:
            continue
    return False


def _need_limit(able: Capabilities, name: str) -> None:
    if name not in able.limits:
        pytest.skip(f"nothing limits {name} here, and the provider says so")
