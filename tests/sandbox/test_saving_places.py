"""A provider author's places that can save: everything else of snapshots and forks is given."""

from __future__ import annotations

import asyncio
import secrets
import shutil
from pathlib import Path
from typing import cast

import pytest

from orchard_core import (
    AgentProvider,
    Capabilities,
    ConfigError,
    NetworkMode,
    NewPlace,
    SandboxProvider,
    SandboxSpec,
    SavingPlaces,
    Snapshot,
    SnapshotMissing,
)
from orchard_core.sandbox.agent_process import AgentProcess, AgentProcesses
from orchard_core.testing.suites.sandbox.snapshots import ForksSuite, SnapshotsSuite

_CAPABILITIES = Capabilities(
    images=frozenset({"host"}),
    networks=frozenset({NetworkMode.HOST}),
    isolated=False,
    private_paths=False,
    snapshot=True,
    fork=True,
)


class CopiedDirectories:
    """Directories of this machine, saved by copying them."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._processes = AgentProcesses(state_dir=str(home / "state"))

    async def place(self, sandbox_id: str, spec: SandboxSpec) -> AgentProcess:
        return await self._processes.place(sandbox_id, spec)

    async def save(self, place: NewPlace, _spec: SandboxSpec) -> Snapshot:
        name = f"snapshot-{secrets.token_hex(4)}"
        await asyncio.to_thread(shutil.copytree, place.workdir, self._home / name, symlinks=True)
        return Snapshot(id=name, provider="copying", size=0)

    async def restore(self, sandbox_id: str, spec: SandboxSpec, snapshot: Snapshot) -> AgentProcess:
        saved = self._home / snapshot.id
        if not saved.is_dir():
            raise SnapshotMissing(f"there is no snapshot {snapshot.id}")
        place = await self.place(sandbox_id, spec)
        await asyncio.to_thread(shutil.copytree, saved, place.workdir, symlinks=True, dirs_exist_ok=True)
        return place

    async def discard(self, snapshot: Snapshot) -> None:
        shutil.rmtree(self._home / snapshot.id, ignore_errors=True)

    async def close(self) -> None:
        await self._processes.close()
        for saved in self._home.glob("snapshot-*"):
            shutil.rmtree(saved)


@pytest.mark.asyncio(loop_scope="class")
class TestCopiedDirectories(SnapshotsSuite, ForksSuite):
    home: Path

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def _home(cls, tmp_path_factory: pytest.TempPathFactory) -> None:
        cls.home = tmp_path_factory.mktemp("copied")

    async def make_provider(self) -> SandboxProvider:
        places: SavingPlaces = CopiedDirectories(self.home)
        return AgentProvider(name="copying", capabilities=_CAPABILITIES, places=places)


@pytest.mark.parametrize("claimed", [{"snapshot": True, "fork": True}, {"snapshot": False, "fork": True}])
def test_a_claim_that_the_places_cannot_keep_is_refused(claimed: dict[str, bool]) -> None:
    able = _CAPABILITIES.model_copy(update=claimed)
    with pytest.raises(ConfigError, match="cannot make") as refusal:
        AgentProvider(name="mine", capabilities=able, places=AgentProcesses())
    assert "`restore`" in refusal.value.hint


async def test_places_that_could_save_need_not_claim_it(tmp_path: Path) -> None:
    able = _CAPABILITIES.model_copy(update={"snapshot": False, "fork": False})
    provider = AgentProvider(name="mine", capabilities=able, places=CopiedDirectories(tmp_path))
    claimed = await cast("SandboxProvider", provider).capabilities()
    assert not claimed.snapshot
    await provider.close()
