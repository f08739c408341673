"""What every provider with snapshots must do, in pods of a real cluster, over both kinds of storage."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import ClassVar

import pytest
import pytest_asyncio
from orchard_env.kubernetes.config import KubernetesConfig
from orchard_env.kubernetes.provider import open_kubernetes
from orchard_env.kubernetes.snapshots.config import SnapshotConfig
from orchard_env.kubernetes.warm.config import PoolConfig

from orchard_core import AdoptingProvider, ImageRef, Sandbox, SandboxProvider, SandboxSpec
from orchard_core.testing.suites.sandbox.snapshots import ForksSuite, SnapshotsSuite

from ..conftest import IMAGE
from ..kept import Kept

POOL = PoolConfig(name="small", image=IMAGE, target=4)


@pytest.mark.asyncio(loop_scope="class")
class Saving(SnapshotsSuite, ForksSuite):
    """Restored sandboxes take pods that wait, where there are any."""

    image: ClassVar[ImageRef] = ImageRef(kind="oci", value=IMAGE)
    kind: ClassVar[str]
    config: ClassVar[KubernetesConfig]
    kept: ClassVar[Kept]

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def _configured(cls, config: KubernetesConfig, settings: Callable[..., SnapshotConfig]) -> None:
        changes = {"snapshots": settings(cls.kind), "pools": (POOL,), "fill_pools": True}
        cls.config = config.model_copy(update=changes)

    async def make_provider(self) -> AdoptingProvider:
        """In the session's namespace."""
        return open_kubernetes(self.config)

    @pytest_asyncio.fixture(scope="class", loop_scope="class", autouse=True)
    @classmethod
    async def _keeping(cls, provider: SandboxProvider) -> AsyncIterator[None]:
        cls.kept = Kept(provider, SandboxSpec(image=cls.image))
        yield
        await cls.kept.close()

    @pytest_asyncio.fixture(loop_scope="class")
    async def sandbox(self, provider: SandboxProvider, spec: SandboxSpec) -> AsyncIterator[Sandbox]:
        """As good as fresh."""
        yield await self.kept.take()


@pytest.mark.cluster
@pytest.mark.nightly
class TestOnADirectory(Saving):
    """A volume that all drivers mount is one."""

    kind = "file"


@pytest.mark.cluster
@pytest.mark.slow
class TestOnS3(Saving):
    """A server that speaks S3 over HTTP."""

    kind = "s3"
