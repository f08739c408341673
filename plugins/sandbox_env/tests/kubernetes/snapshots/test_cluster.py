"""What is particular to saved files in pods, on a real cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio
from orchard_env.kubernetes.config import KubernetesConfig
from orchard_env.kubernetes.provider import KubernetesProvider, open_kubernetes
from orchard_env.kubernetes.snapshots.config import SnapshotConfig

from orchard_core import SandboxSpec, SnapshotMissing

from .conftest import path_of

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

Settings = Callable[..., SnapshotConfig]


@pytest.fixture
def storage(settings: Settings) -> SnapshotConfig:
    return settings("file", chunk_mb=1)


@pytest_asyncio.fixture
async def provider(config: KubernetesConfig, storage: SnapshotConfig) -> AsyncIterator[KubernetesProvider]:
    opened = open_kubernetes(config.model_copy(update={"snapshots": storage}))
    yield opened
    await opened.close()


async def test_a_damaged_snapshot_becomes_no_sandbox(
    provider: KubernetesProvider, storage: SnapshotConfig, spec: SandboxSpec
) -> None:
    async with await provider.create(spec) as sandbox:
        await sandbox.exec("head -c 3000000 /dev/urandom > big")
        saved = await sandbox.snapshot()
        last = max((path_of(storage) / "data").rglob("*-*"))
        last.write_bytes(last.read_bytes()[:-1])
        with pytest.raises(SnapshotMissing, match="not what was saved"):
            await provider.create(spec, restore=saved)
        assert [one.id for one in await provider.standing()] == [sandbox.id]


async def test_files_of_a_user_and_of_its_own_volume_are_saved_and_deletions_too(
    provider: KubernetesProvider, spec: SandboxSpec
) -> None:
    asked = spec.model_copy(update={"user": "1000"})
    async with await provider.create(asked) as sandbox:
        made = await sandbox.exec("echo kept > file; echo gone > /tmp/gone; chmod 750 file; cat /.orchard/*")
        assert "No such file" not in made.text
        saved = await sandbox.snapshot()
    async with await provider.create(asked, restore=saved) as restored:
        assert (await restored.exec("cat file; stat -c '%a %u' file")).text == "kept\n750 1000\n"
        await restored.exec("rm /tmp/gone")
        (child,) = await restored.fork(1)
        async with child:
            assert not (await child.exec("cat /tmp/gone")).ok
            assert (await child.exec("cat file")).text == "kept\n"
