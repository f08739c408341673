"""The whole sandbox suite, in pods of a real cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import ClassVar

import pytest
import pytest_asyncio
from orchard_env.kubernetes.config import KubernetesConfig
from orchard_env.kubernetes.provider import open_kubernetes

from orchard_core import AdoptingProvider, ImageRef, Sandbox, SandboxProvider, SandboxSpec
from orchard_core.testing import SandboxSuite

from .conftest import IMAGE
from .kept import Kept


@pytest.mark.cluster
@pytest.mark.slow
class TestKubernetes(SandboxSuite):
    """Cases that make sandboxes make pods; the others share one, whose agent is started anew for each."""

    image: ClassVar[ImageRef] = ImageRef(kind="oci", value=IMAGE)
    config: ClassVar[KubernetesConfig]
    kept: ClassVar[Kept]

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def _configured(cls, config: KubernetesConfig) -> None:
        cls.config = config

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
        """As good as fresh: what `reset_processes` promises is relied on here by every case."""
        yield await self.kept.take()
