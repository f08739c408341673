"""The name that a caller asks for: it is the sandbox's id, and nobody else's."""

from __future__ import annotations

import asyncio
import secrets

import pytest

from orchard_core.errors import SandboxExists, SandboxUnsupported
from orchard_core.sandbox.contract import Sandbox, SandboxProvider
from orchard_core.testing.suites.sandbox.base import SandboxSuiteBase
from orchard_core.types.sandbox import Capabilities

_BAD_NAMES = ("", "Upper", "-before", "after-", "under_score", "dot.dot", "a/b", "..", "é", "a b", "a" * 64)


class NamingSuite(SandboxSuiteBase):
    """`SandboxSpec.name` is an id that the caller chose."""

    async def test_a_name_becomes_the_id(self, provider: SandboxProvider) -> None:
        """A service names its sandboxes itself: the id is the name, to the letter."""
        for name in (_fresh(), ("n" + secrets.token_hex(31) + "n")[:63]):
            async with await provider.create(self.with_spec(name=name)) as sandbox:
                assert sandbox.id == name
                assert sandbox.spec.name == name
                assert (await sandbox.exec([*self.echo, "named"])).ok

    async def test_a_taken_name_is_refused(self, provider: SandboxProvider) -> None:
        """Handing out a sandbox that stands gives one caller another's files: raise SandboxExists."""
        spec = self.with_spec(name=_fresh())
        async with await provider.create(spec) as sandbox:
            await sandbox.write(f"{await self.where(sandbox)}/file", b"mine")
            with pytest.raises(SandboxExists):
                await provider.create(spec)
            assert await sandbox.alive()
            assert await sandbox.read_bytes(f"{await self.where(sandbox)}/file") == b"mine"

    async def test_of_two_that_ask_at_once_one_gets_the_name(self, provider: SandboxProvider) -> None:
        """A look before a creation is too early: two callers look at the same time."""
        spec = self.with_spec(name=_fresh())
        made = await asyncio.gather(*(provider.create(spec) for _ in range(3)), return_exceptions=True)
        got = [one for one in made if isinstance(one, Sandbox)]
        await asyncio.gather(*(one.close() for one in got))
        assert len(got) == 1
        assert sum(isinstance(one, SandboxExists) for one in made) == 2

    async def test_a_name_is_free_when_its_sandbox_has_ended(self, provider: SandboxProvider) -> None:
        """Names come again when a run is resumed: give back what closed, with nothing left in it."""
        spec = self.with_spec(name=_fresh())
        for _ in range(2):
            async with await provider.create(spec) as sandbox:
                where = await self.where(sandbox)
                assert "left" not in [entry.name for entry in await sandbox.list(where)]
                await sandbox.write(f"{where}/left", b"")

    @pytest.mark.parametrize("name", _BAD_NAMES, ids=[repr(name)[:20] for name in _BAD_NAMES])
    async def test_a_bad_name_is_refused(self, provider: SandboxProvider, name: str) -> None:
        """A name becomes a file's, a pod's or a container's: refuse what is no DNS label before it does."""
        with pytest.raises(SandboxUnsupported):
            await provider.create(self.with_spec(name=name))

    async def test_a_fork_drops_the_name(self, provider: SandboxProvider, able: Capabilities) -> None:
        """A fork of a named sandbox cannot have its name, and needs none: the provider gives it an id."""
        if not able.fork:
            pytest.skip("the provider makes no forks, and says so")
        async with await provider.create(self.with_spec(name=_fresh())) as sandbox:
            one, two = await sandbox.fork(2)
            async with one, two:
                assert len({sandbox.id, one.id, two.id}) == 3
                assert (one.spec.name, two.spec.name) == (None, None)


def _fresh() -> str:
    return f"named-{secrets.token_hex(6)}"
