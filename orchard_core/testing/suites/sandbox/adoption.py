"""Sandboxes that outlive the object that made them: found, adopted and let go of."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator

import pytest

from orchard_core.errors import SandboxExists, SandboxGone
from orchard_core.sandbox.contract import AdoptingProvider, Sandbox, SandboxProvider
from orchard_core.testing.suites.sandbox.agent_http import ask
from orchard_core.testing.suites.sandbox.base import PATIENCE_S, SandboxSuiteBase, eventually
from orchard_core.types.sandbox import StandingSandbox


class AdoptionSuite(SandboxSuiteBase):
    """What an AdoptingProvider promises; skipped for a provider that is none.

    `make_provider` is called twice, for two objects that see the same sandboxes, as two processes would.
    """

    @contextlib.asynccontextmanager
    async def _two(self, provider: SandboxProvider) -> AsyncIterator[tuple[AdoptingProvider, ...]]:
        if not isinstance(provider, AdoptingProvider):
            pytest.skip("the provider's sandboxes end with it: it is no AdoptingProvider")
        made = [await self.make_provider() for _ in range(2)]
        try:
            yield tuple(one for one in made if isinstance(one, AdoptingProvider))
        finally:
            for one in made:
                await one.close()

    async def test_what_stands_tells_its_spec(self, provider: SandboxProvider) -> None:
        """A process that starts anew knows nothing: id, spec and labels must stand with the sandbox."""
        async with self._two(provider) as (one, two):
            spec = self.with_spec(name=_fresh(), labels={"suite": "a/b c"}, env={"GIVEN": "x=1\n"}, ttl_s=900)
            async with await one.create(spec) as sandbox:
                (found,) = await _found(two, sandbox.id)
                assert found.spec.model_copy(update={"files": ()}) == spec
                assert found.spec.labels == {"suite": "a/b c"}
                (again,) = await _found(one, sandbox.id)
                timeless = {"age_s": None}  # it is asked at another moment
                assert found.model_copy(update=timeless) == again.model_copy(update=timeless)
            assert await _found(two, sandbox.id) == []

    async def test_a_running_command_goes_on_under_its_adopter(self, provider: SandboxProvider) -> None:
        """A restart of the driver must cost no work: no command ends, and its result is had by its id."""
        self._need_shell_and_agent()
        async with self._two(provider) as (one, two):
            made = await one.create(self.with_spec())
            run = await made.start("while ! test -e go; do sleep 0.05; done; echo went; exit 7")
            await one.release()
            sandbox = await two.adopt(made.id)
            assert sandbox.id == made.id
            await sandbox.exec("echo kept > file; touch go")
            answer = await ask(await sandbox.endpoint(), "GET", f"/v1/exec/{run.id}?wait={PATIENCE_S:g}")
            status, output = answer.run()
            assert (status["exit_code"], output) == (7, b"went\n")
            assert await sandbox.read_bytes(f"{await self.where(sandbox)}/file") == b"kept\n"

    async def test_what_is_adopted_is_like_what_is_made(self, provider: SandboxProvider) -> None:
        """The adopter is its owner: spec, files, a reset, and its end."""
        async with self._two(provider) as (one, two):
            made = await one.create(self.with_spec(labels={"kept": "yes"}))
            await made.write(f"{await self.where(made)}/file", b"kept")
            await one.release()
            sandbox = await two.adopt(made.id)
            assert isinstance(sandbox, Sandbox)
            assert sandbox.spec == made.spec
            await sandbox.reset_processes()
            assert await sandbox.read_bytes(f"{await self.where(sandbox)}/file") == b"kept"
            assert (await sandbox.exec([*self.echo, "on"])).ok
            await sandbox.close()
            assert await _found(two, sandbox.id) == []

    async def test_adopting_twice_gives_the_same_object(self, provider: SandboxProvider) -> None:
        """Two objects for one sandbox would have two clocks and two ends."""
        async with self._two(provider) as (one, two):
            made = await one.create(self.with_spec())
            assert await one.adopt(made.id) is made
            await one.release()
            first, second = await asyncio.gather(two.adopt(made.id), two.adopt(made.id))
            assert first is second

    async def test_letting_go_destroys_nothing(self, provider: SandboxProvider) -> None:
        """A process that is drained hands over: everything stands, and a later close of it does nothing."""
        async with self._two(provider) as (one, two):
            made = await one.create(self.with_spec())
            await one.release()
            assert not await made.alive()
            with pytest.raises(SandboxGone):
                await made.exec([*self.echo, "late"])
            await made.close()
            await one.close()
            sandbox = await two.adopt(made.id)
            assert (await sandbox.exec([*self.echo, "stands"])).ok

    async def test_what_does_not_stand_cannot_be_adopted(self, provider: SandboxProvider) -> None:
        """A new sandbox in the place of one that is gone loses work in silence: raise SandboxGone. One that
        is not `wanted` is left alone likewise."""
        async with self._two(provider) as (one, two):
            with pytest.raises(SandboxGone):
                await two.adopt(_fresh())
            made = await one.create(self.with_spec())
            with pytest.raises(SandboxGone):
                await two.adopt(made.id, wanted=lambda spec: spec.name == "another")
            await made.close()
            with pytest.raises(SandboxGone):
                await two.adopt(made.id)

    async def test_a_name_that_another_process_uses_is_taken(self, provider: SandboxProvider) -> None:
        """Two drivers share an engine or a cluster: a name that stands anywhere is refused."""
        async with self._two(provider) as (one, two):
            spec = self.with_spec(name=_fresh())
            async with await one.create(spec) as sandbox:
                with pytest.raises(SandboxExists):
                    await two.create(spec)
                assert (await sandbox.exec([*self.echo, "unharmed"])).ok

    async def test_the_life_span_goes_on_from_creation(self, provider: SandboxProvider) -> None:
        """Adoption is no second birth: what has used up its life span while nobody looked ends."""
        async with self._two(provider) as (one, two):
            made = await one.create(self.with_spec(ttl_s=self.ttl_s))
            await one.release()
            with contextlib.suppress(SandboxGone):
                await two.adopt(made.id)
            assert await eventually(lambda: _none(two, made.id))

    def _need_shell_and_agent(self) -> None:
        self.need_agent()
        if not self.has_shell:
            pytest.skip("the image has no shell")


async def _found(provider: AdoptingProvider, sandbox_id: str) -> list[StandingSandbox]:
    return [one for one in await provider.standing() if one.id == sandbox_id]


async def _none(provider: AdoptingProvider, sandbox_id: str) -> bool:
    return await _found(provider, sandbox_id) == []


def _fresh() -> str:
    return f"adopted-{secrets.token_hex(6)}"
