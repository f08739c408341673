"""Saved files: what a snapshot holds, how long it lives, and what forks share (nothing)."""

from __future__ import annotations

import asyncio
import os

import pytest

from orchard_core.errors import ConfigError, SandboxError, SandboxGone, SandboxUnsupported, SnapshotMissing
from orchard_core.sandbox.contract import Sandbox, SandboxProvider
from orchard_core.testing.suites.sandbox.agent_http import ask
from orchard_core.testing.suites.sandbox.base import SandboxSuiteBase, eventually
from orchard_core.types.sandbox import Capabilities, FileInput, Snapshot

_ODD_NAMES = ("a b", "new\nline", os.fsdecode(b"caf\xe9\xff"), "-rf", "é☃")


class SnapshotsSuite(SandboxSuiteBase):
    """A snapshot is the files of one moment, whatever becomes of the sandbox."""

    async def test_a_snapshot_is_of_its_moment(
        self, provider: SandboxProvider, sandbox: Sandbox, able: Capabilities, place: str
    ) -> None:
        """What is written afterwards is no part of it: copy the files, do not name them."""
        _need(able.snapshot)
        await sandbox.write(f"{place}/changed", b"before")
        await sandbox.write(f"{place}/removed", b"before")
        saved = await sandbox.snapshot()
        await sandbox.write(f"{place}/changed", b"after")
        await sandbox.write(f"{place}/added", b"after")
        await sandbox.remove(f"{place}/removed")
        async with await provider.create(self.with_spec(), restore=saved) as restored:
            where = await self.where(restored)
            assert {entry.name for entry in await restored.list(where)} >= {"changed", "removed"}
            assert "added" not in {entry.name for entry in await restored.list(where)}
            assert await restored.read_bytes(f"{where}/changed") == b"before"
            assert await restored.read_bytes(f"{where}/removed") == b"before"
        await provider.discard(saved)

    async def test_a_snapshot_keeps_modes_times_and_names(
        self, provider: SandboxProvider, sandbox: Sandbox, able: Capabilities, place: str
    ) -> None:
        """A build that looks at times, and a script that must be executable, work on in a copy."""
        _need(able.snapshot)
        await sandbox.write(f"{place}/tool", b"#!/bin/sh\n", mode=0o751)
        await sandbox.mkdir(f"{place}/empty")
        for name in _ODD_NAMES:
            await sandbox.write(f"{place}/names/{name}", name.encode("utf-8", "surrogateescape"))
        await asyncio.sleep(0.05)
        saved = await sandbox.snapshot()
        async with await provider.create(self.with_spec(), restore=saved) as restored:
            where = await self.where(restored)
            for path in ("tool", "empty", "names"):
                was, now = await sandbox.stat(f"{place}/{path}"), await restored.stat(f"{where}/{path}")
                assert (now.kind, now.mode, now.modified) == (was.kind, was.mode, was.modified)
            assert {entry.name for entry in await restored.list(f"{where}/names")} == set(_ODD_NAMES)
            for name in _ODD_NAMES:
                content = await restored.read_bytes(f"{where}/names/{name}")
                assert content == name.encode("utf-8", "surrogateescape")
        await provider.discard(saved)

    async def test_links_in_a_snapshot_stay_links(
        self, provider: SandboxProvider, sandbox: Sandbox, able: Capabilities, place: str
    ) -> None:
        """A link may lead to the host's files, or in a circle: copy the link, never what it names."""
        _need(able.snapshot)
        if not self.has_shell:
            pytest.skip("the image has no shell")
        made = await sandbox.exec("ln -s /etc/passwd out; ln -s loop loop; ln -s nowhere gone; ln -s . here")
        assert made.ok, made.text
        saved = await sandbox.snapshot()
        async with await provider.create(self.with_spec(), restore=saved) as restored:
            where = await self.where(restored)
            for name in ("out", "loop", "gone", "here"):
                was, now = await sandbox.stat(f"{place}/{name}"), await restored.stat(f"{where}/{name}")
                assert (now.kind, now.link) == ("symlink", was.link)
        await provider.discard(saved)

    async def test_a_snapshot_outlives_its_sandbox(
        self, provider: SandboxProvider, able: Capabilities
    ) -> None:
        """Branches are made long after the sandbox has gone: keep the files apart from it."""
        _need(able.snapshot)
        sandbox = await provider.create(self.with_spec())
        await sandbox.write(f"{await self.where(sandbox)}/file", b"kept")
        saved = await sandbox.snapshot()
        await sandbox.close()
        async with await provider.create(self.with_spec(), restore=saved) as restored:
            assert await restored.read_bytes(f"{await self.where(restored)}/file") == b"kept"
        await provider.discard(saved)

    async def test_a_snapshot_never_changes(
        self, provider: SandboxProvider, sandbox: Sandbox, able: Capabilities, place: str
    ) -> None:
        """It is restored many times, at once too: what one copy writes, no other and no later one sees."""
        _need(able.snapshot)
        await sandbox.write(f"{place}/file", b"saved")
        saved = await sandbox.snapshot()
        made = await asyncio.gather(
            *(provider.create(self.with_spec(), restore=saved) for _ in range(3)),
        )
        for number, one in enumerate(made):
            where = await self.where(one)
            assert await one.read_bytes(f"{where}/file") == b"saved"
            await one.write(f"{where}/file", b"%d" % number)
        await asyncio.gather(*(one.close() for one in made))
        async with await provider.create(self.with_spec(), restore=saved) as late:
            assert await late.read_bytes(f"{await self.where(late)}/file") == b"saved"
        await provider.discard(saved)

    async def test_files_of_the_spec_are_not_written_over_restored_ones(
        self, provider: SandboxProvider, able: Capabilities
    ) -> None:
        """The agent may have changed a file that the task gave: what was saved counts."""
        _need(able.snapshot)
        if not able.private_paths:
            pytest.skip("paths of a spec are the host's own")
        path = f"{self.with_spec().workdir}/given"
        spec = self.with_spec(files=(FileInput(path=path, content=b"given"),))
        async with await provider.create(spec) as sandbox:
            await sandbox.write(path, b"changed")
            saved = await sandbox.snapshot()
        async with await provider.create(spec, restore=saved) as restored:
            assert await restored.read_bytes(path) == b"changed"
        await provider.discard(saved)

    async def test_several_snapshots_at_once_are_all_whole(
        self, provider: SandboxProvider, sandbox: Sandbox, able: Capabilities, place: str
    ) -> None:
        """Callers do not wait for one another: two copies of one sandbox must not disturb each other."""
        _need(able.snapshot)
        data = os.urandom(100_000)
        for number in range(5):
            await sandbox.write(f"{place}/{number}", data)
        saved = await asyncio.gather(*(sandbox.snapshot() for _ in range(3)))
        assert len({one.id for one in saved}) == 3
        for one in saved:
            async with await provider.create(self.with_spec(), restore=one) as restored:
                where = await self.where(restored)
                assert [await restored.read_bytes(f"{where}/{number}") for number in range(5)] == [data] * 5
            await provider.discard(one)

    async def test_a_discarded_snapshot_is_gone(
        self, provider: SandboxProvider, sandbox: Sandbox, able: Capabilities, place: str
    ) -> None:
        """Snapshots take space: remove one when told, harm no sandbox made from it, accept a second time."""
        _need(able.snapshot)
        await sandbox.write(f"{place}/file", b"kept")
        saved = await sandbox.snapshot()
        async with await provider.create(self.with_spec(), restore=saved) as restored:
            for _ in range(2):
                await provider.discard(saved)
            with pytest.raises(SnapshotMissing):
                await provider.create(self.with_spec(), restore=saved)
            assert await restored.read_bytes(f"{await self.where(restored)}/file") == b"kept"
            if self.has_shell:
                assert (await restored.exec("cat file")).stdout == b"kept"

    async def test_a_snapshot_of_another_is_refused(
        self, provider: SandboxProvider, able: Capabilities
    ) -> None:
        """An empty sandbox instead of the saved one spoils what is measured on it: raise."""
        if not able.snapshot:
            with pytest.raises(SandboxUnsupported):
                await provider.create(
                    self.with_spec(), restore=Snapshot(id="s", provider=provider.name, size=0)
                )
            return
        for name in (provider.name, "another-provider"):
            with pytest.raises((SnapshotMissing, SandboxUnsupported)):
                await provider.create(self.with_spec(), restore=Snapshot(id="no-such", provider=name, size=0))
            await provider.discard(Snapshot(id="no-such", provider=name, size=0))

    async def test_closing_the_provider_ends_its_snapshots(self, able: Capabilities) -> None:
        """A driver that ends must leave nothing behind, saved files included."""
        _need(able.snapshot)
        provider = await self.make_provider()
        saved = await (await provider.create(self.with_spec())).snapshot()
        await provider.close()
        with pytest.raises(SandboxError):
            await provider.create(self.with_spec(), restore=saved)
        await provider.close()

    async def test_a_closed_sandbox_has_nothing_to_save(
        self, provider: SandboxProvider, able: Capabilities
    ) -> None:
        """Its files are gone: raise SandboxGone, never give an empty snapshot."""
        _need(able.snapshot)
        sandbox = await provider.create(self.with_spec())
        await sandbox.close()
        with pytest.raises(SandboxGone):
            await sandbox.snapshot()
        if able.fork:
            with pytest.raises(SandboxGone):
                await sandbox.fork(1)


class ForksSuite(SandboxSuiteBase):
    """Forks begin alike and share nothing."""

    async def test_forks_are_sandboxes_of_their_own(
        self, sandbox: Sandbox, able: Capabilities, place: str
    ) -> None:
        """Each lives and dies for itself: another id, the same spec, and none ends with another."""
        _need(able.fork)
        await sandbox.write(f"{place}/file", b"forked")
        made = await sandbox.fork(3)
        try:
            assert len({sandbox.id, *(one.id for one in made)}) == 4
            if able.private_paths:
                assert all(one.spec == sandbox.spec for one in made)
            await made[0].close()
            await sandbox.close()
            for one in made[1:]:
                where = await self.where(one)
                assert await one.read_bytes(f"{where}/file") == b"forked"
                await one.write(f"{where}/{one.id}", b"own")
            names = [{entry.name for entry in await one.list(await self.where(one))} for one in made[1:]]
            assert names[0] ^ names[1] == {made[1].id, made[2].id}
        finally:
            await asyncio.gather(*(one.close() for one in made))

    async def test_a_fork_of_a_fork_is_one_too(
        self, sandbox: Sandbox, able: Capabilities, place: str
    ) -> None:
        """Trees of branches grow deep: each has all that its ancestors wrote."""
        _need(able.fork)
        last, where = sandbox, place
        for depth in range(4):
            await last.write(f"{where}/{depth}", b"%d" % depth)
            (child,) = await last.fork(1)
            if last is not sandbox:
                await last.close()
            last, where = child, await self.where(child)
        async with last:
            found = [await last.read_bytes(f"{where}/{depth}") for depth in range(4)]
            assert found == [b"0", b"1", b"2", b"3"]

    async def test_a_count_below_one_is_refused(self, sandbox: Sandbox, able: Capabilities) -> None:
        """No fork at all is a mistake of the caller's: raise ConfigError."""
        _need(able.fork)
        for count in (0, -1):
            with pytest.raises(ConfigError):
                await sandbox.fork(count)

    async def test_nothing_runs_in_a_fork_and_the_parent_goes_on(
        self, sandbox: Sandbox, able: Capabilities, place: str
    ) -> None:
        """Files are copied, processes are not; those of the parent must not notice, nor stay stopped."""
        _need(able.fork)
        if not self.has_shell:
            pytest.skip("the image has no shell")
        await sandbox.start("while :; do echo x >> grows; sleep 0.01; done")
        assert await eventually(lambda: _longer(sandbox, f"{place}/grows", 0))
        (child,) = await sandbox.fork(1)
        async with child:
            there = f"{await self.where(child)}/grows"
            size = (await child.stat(there)).size
            so_far = (await sandbox.stat(f"{place}/grows")).size
            assert await eventually(lambda: _longer(sandbox, f"{place}/grows", so_far + 10))
            assert (await child.stat(there)).size == size

    async def test_a_fork_has_a_token_of_its_own(self, sandbox: Sandbox, able: Capabilities) -> None:
        """Programs in one copy must not reach into another: the parent's token opens nothing in the child."""
        _need(able.fork)
        self.need_agent()
        parent = await sandbox.endpoint()
        (child,) = await sandbox.fork(1)
        async with child:
            own = await child.endpoint()
            assert own.token != parent.token
            assert (await ask(own, "GET", "/v1/health")).status == 200
            assert (await ask(own, "GET", "/v1/health", token=parent.token)).status == 401


async def _longer(sandbox: Sandbox, path: str, size: int) -> bool:
    try:
        return (await sandbox.stat(path)).size > size
    except SandboxError:
        return False


def _need(claimed: bool) -> None:
    if not claimed:
        pytest.skip("the provider claims no snapshots or forks")
