"""Sandboxes that begin, keep apart or end wrongly."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from typing import Any

from orchard_core import (
    ModelEndpoint,
    SandboxProvider,
    SandboxSpec,
    Snapshot,
)
from orchard_core.testing import FAKE_CAPABILITIES, FakeSandbox
from tests.testing.faulty.sandbox import CleaningProvider, Faulty


class TestFilesShared(Faulty):
    caught_by = "test_two_sandboxes_have_their_own_files"

    class sandbox_type(FakeSandbox):  # noqa: N801
        def __init__(self, base: Path, *args: Any, **options: Any) -> None:
            super().__init__(base, *args, **options)
            self._files.root = base.parent / "shared"
            self._files.root.mkdir(exist_ok=True)


class TestAResetThatKillsNothing(Faulty):
    caught_by = "test_a_reset_kills_everything_and_keeps_the_files"

    class sandbox_type(FakeSandbox):  # noqa: N801
        async def reset_processes(self) -> None:
            return None


class TestAResetThatLosesTheFiles(Faulty):
    caught_by = "test_a_reset_kills_everything_and_keeps_the_files"

    class sandbox_type(FakeSandbox):  # noqa: N801
        async def reset_processes(self) -> None:
            await super().reset_processes()
            shutil.rmtree(self.root / "workspace")
            await self.mkdir("/workspace")


class TestASecondCloseThatRaises(Faulty):
    caught_by = "test_closing_may_be_repeated_and_ends_everything"

    class sandbox_type(FakeSandbox):  # noqa: N801
        async def close(self) -> None:
            if self._closed:
                raise RuntimeError("closed already")
            await super().close()


class TestCloseThatLeavesProcesses(Faulty):
    caught_by = "test_closing_leaves_no_process"

    class sandbox_type(FakeSandbox):  # noqa: N801
        async def close(self) -> None:
            self._closed = True
            self._reaper.cancel()


class TestAModelWithoutItsPath(Faulty):
    caught_by = "test_a_model_is_reached_from_inside"

    class sandbox_type(FakeSandbox):  # noqa: N801
        async def expose_model(self, endpoint: ModelEndpoint) -> ModelEndpoint:
            return dataclasses.replace(endpoint, base_url=endpoint.base_url.removesuffix("/v1"))


class TestASnapshotThatIsFaked(Faulty):
    caught_by = "test_snapshots_and_forks_are_as_claimed"

    class sandbox_type(FakeSandbox):  # noqa: N801
        async def snapshot(self) -> Snapshot:
            return Snapshot(id="none", provider="fake", size=0)

    async def make_provider(self) -> SandboxProvider:
        able = FAKE_CAPABILITIES.model_copy(update={"snapshot": False, "fork": False})
        return CleaningProvider(sandbox_type=self.sandbox_type, capabilities=able)


class TestAnyImageAccepted(Faulty):
    caught_by = "test_an_image_kind_that_is_not_claimed_is_refused"

    async def make_provider(self) -> SandboxProvider:
        class Lenient(CleaningProvider):
            def _refuse(self, spec: SandboxSpec) -> None:
                return None

        return Lenient()


class TestANameIgnored(Faulty):
    caught_by = "test_a_name_becomes_the_id"

    async def make_provider(self) -> SandboxProvider:
        class Deaf(CleaningProvider):
            async def create(self, spec: SandboxSpec, *, restore: Snapshot | None = None) -> FakeSandbox:
                return await super().create(spec.model_copy(update={"name": None}), restore=restore)

        return Deaf()


class TestATakenNameGivenOut(Faulty):
    caught_by = "test_a_taken_name_is_refused"

    async def make_provider(self) -> SandboxProvider:
        class Careless(CleaningProvider):
            async def create(self, spec: SandboxSpec, *, restore: Snapshot | None = None) -> FakeSandbox:
                for made in self.created:
                    if spec.name == made.id and await made.alive():
                        return made
                return await super().create(spec, restore=restore)

        return Careless()
