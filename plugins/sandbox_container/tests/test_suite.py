"""The provider honours the sandbox suite, on a real engine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pytest

from orchard_core import ImageRef, SandboxProvider
from orchard_core.testing import SandboxSuite
from orchard_sandbox_container.config import ContainerConfig
from orchard_sandbox_container.provider import ContainerProvider

if TYPE_CHECKING:
    from .conftest import Podman


@pytest.mark.slow
class TestContainerProvider(SandboxSuite):
    """An image whose user is root."""

    image = ImageRef(kind="oci", value="busybox")
    config: ClassVar[ContainerConfig]
    ttl_s = 3.0

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def _engine(cls, podman: Podman, tmp_path_factory: pytest.TempPathFactory) -> None:
        state = tmp_path_factory.mktemp("state")
        cls.config = ContainerConfig(engine=podman.socket, state_dir=str(state))

    async def make_provider(self) -> SandboxProvider:
        return ContainerProvider(self.config)
