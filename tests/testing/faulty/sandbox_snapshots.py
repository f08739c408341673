"""Snapshots and forks that are not what they are called."""

from __future__ import annotations

import builtins
import shutil
from pathlib import Path

from orchard_core import Sandbox, SandboxProvider, SandboxSpec, Snapshot
from orchard_core.testing import FakeSandbox
from tests.testing.faulty.sandbox import CleaningProvider, Faulty


class FaultySaving(Faulty):
    """Runs the suite on a provider that saves or restores wrongly."""

    provider_type: type[CleaningProvider] = CleaningProvider

    async def make_provider(self) -> SandboxProvider:
        return self.provider_type(sandbox_type=self.sandbox_type)


class TestASnapshotThatIsTheLiveTree(FaultySaving):
    caught_by = "test_a_snapshot_is_of_its_moment"

    class provider_type(CleaningProvider):  # noqa: N801
        async def _save(self, sandbox: FakeSandbox) -> Snapshot:
            saved = await super()._save(sandbox)
            shutil.rmtree(self._home / saved.id)
            (self._home / saved.id).symlink_to(sandbox.root)
            return saved


class TestASnapshotWithoutModes(FaultySaving):
    caught_by = "test_a_snapshot_keeps_modes_times_and_names"

    class provider_type(CleaningProvider):  # noqa: N801
        async def _save(self, sandbox: FakeSandbox) -> Snapshot:
            saved = await super()._save(sandbox)
            (self._home / saved.id / "workspace/tool").chmod(0o644)
            return saved


class TestASnapshotThatFollowsLinks(FaultySaving):
    caught_by = "test_links_in_a_snapshot_stay_links"

    class provider_type(CleaningProvider):  # noqa: N801
        async def _save(self, sandbox: FakeSandbox) -> Snapshot:
            saved = await super()._save(sandbox)
            link = self._home / saved.id / "workspace/out"
            content = link.read_bytes()
            link.unlink()
            link.write_bytes(content)
            return saved


class TestASnapshotThatDiesWithItsSandbox(FaultySaving):
    caught_by = "test_a_snapshot_outlives_its_sandbox"

    class provider_type(CleaningProvider):  # noqa: N801
        def _saved(self, spec: SandboxSpec, snapshot: Snapshot) -> Path:
            if all(sandbox._closed for sandbox in self.created):
                shutil.rmtree(self._home / snapshot.id)
                (self._home / snapshot.id).mkdir()
            return super()._saved(spec, snapshot)


class TestASnapshotThatRestoredSandboxesWriteTo(FaultySaving):
    caught_by = "test_a_snapshot_never_changes"

    class provider_type(CleaningProvider):  # noqa: N801
        async def create(self, spec: SandboxSpec, *, restore: Snapshot | None = None) -> FakeSandbox:
            made = await super().create(spec, restore=restore)
            if restore is not None:
                shutil.rmtree(made.root)
                made.root.symlink_to(self._home / restore.id)
            return made


class TestFilesOfTheSpecOverSavedOnes(FaultySaving):
    caught_by = "test_files_of_the_spec_are_not_written_over_restored_ones"

    class provider_type(CleaningProvider):  # noqa: N801
        async def create(self, spec: SandboxSpec, *, restore: Snapshot | None = None) -> FakeSandbox:
            made = await super().create(spec, restore=restore)
            for file in spec.files:
                await made.write(file.path, file.content, mode=file.mode)
            return made


class TestADiscardThatKeeps(FaultySaving):
    caught_by = "test_a_discarded_snapshot_is_gone"

    class provider_type(CleaningProvider):  # noqa: N801
        async def discard(self, snapshot: Snapshot) -> None:
            return None


class TestADiscardThatTakesTheSandboxesToo(FaultySaving):
    caught_by = "test_a_discarded_snapshot_is_gone"

    class provider_type(CleaningProvider):  # noqa: N801
        async def discard(self, snapshot: Snapshot) -> None:
            await super().discard(snapshot)
            await self.created[-1].close()


class TestAnEmptySandboxForAMissingSnapshot(FaultySaving):
    caught_by = "test_a_snapshot_of_another_is_refused"

    class provider_type(CleaningProvider):  # noqa: N801
        async def create(self, spec: SandboxSpec, *, restore: Snapshot | None = None) -> FakeSandbox:
            known = restore is not None and restore.id in self._images
            return await super().create(spec, restore=restore if known else None)


class TestSnapshotsThatOutliveTheirProvider(FaultySaving):
    caught_by = "test_closing_the_provider_ends_its_snapshots"

    class provider_type(CleaningProvider):  # noqa: N801
        async def close(self) -> None:
            for sandbox in self.created:
                await sandbox.close()


class TestAnEmptySnapshotOfAClosedSandbox(FaultySaving):
    caught_by = "test_a_closed_sandbox_has_nothing_to_save"

    class sandbox_type(FakeSandbox):  # noqa: N801
        async def snapshot(self) -> Snapshot:
            self.root.mkdir(parents=True, exist_ok=True)
            return await self._copier.save(self)


class TestForksThatAreOneSandbox(FaultySaving):
    caught_by = "test_forks_are_sandboxes_of_their_own"

    class sandbox_type(FakeSandbox):  # noqa: N801
        async def fork(self, count: int) -> builtins.list[Sandbox]:
            return (await super().fork(1)) * count


class TestForksThatDieWithTheirParent(FaultySaving):
    caught_by = "test_forks_are_sandboxes_of_their_own"

    class sandbox_type(FakeSandbox):  # noqa: N801
        async def fork(self, count: int) -> builtins.list[Sandbox]:
            self.made = await super().fork(count)
            return self.made

        async def close(self) -> None:
            for child in getattr(self, "made", ()):
                await child.close()
            await super().close()


class TestNoForksForAnyCount(FaultySaving):
    caught_by = "test_a_count_below_one_is_refused"

    class sandbox_type(FakeSandbox):  # noqa: N801
        async def fork(self, count: int) -> builtins.list[Sandbox]:
            return await super().fork(count) if count > 0 else []


class TestAForkThatStopsItsParent(FaultySaving):
    caught_by = "test_nothing_runs_in_a_fork_and_the_parent_goes_on"

    class sandbox_type(FakeSandbox):  # noqa: N801
        async def fork(self, count: int) -> builtins.list[Sandbox]:
            made = await super().fork(count)
            await self.reset_processes()
            return made
