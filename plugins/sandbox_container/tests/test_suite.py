"""The provider honours the sandbox suite, on a real engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import pytest
from orchard_sandbox_container.config import ContainerConfig
from orchard_sandbox_container.provider import ContainerProvider

from orchard_core import Capabilities, ImageRef, Sandbox, SandboxProvider
from orchard_core.testing import SandboxSuite

if TYPE_CHECKING:
    from .conftest import Podman


@pytest.mark.slow
class TestContainerProvider(SandboxSuite):
    """An image whose user is root."""

    config: ClassVar[ContainerConfig]
    ttl_s = 3.0

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def _engine(cls, podman: Podman, python_image: str, tmp_path_factory: pytest.TempPathFactory) -> None:
        cls.image = ImageRef(kind="oci", value=python_image)
        state = tmp_path_factory.mktemp("state")
        cls.config = ContainerConfig(engine=podman.socket, state_dir=str(state))

    async def make_provider(self) -> SandboxProvider:
        return ContainerProvider(self.config)

    async def test_a_snapshot_keeps_modes_times_and_names(
        self, provider: SandboxProvider, sandbox: Sandbox, able: Capabilities, place: str
    ) -> None:
        """As in the suite, but for the fraction of a second of times, which images do not keep."""
        await sandbox.write(f"{place}/tool", b"#!/bin/sh\n", mode=0o751)
        await sandbox.mkdir(f"{place}/names/new\nline")
        saved = await sandbox.snapshot()
        async with await provider.create(self.with_spec(), restore=saved) as restored:
            for path in ("tool", "names", "names/new\nline"):
                was, now = await sandbox.stat(f"{place}/{path}"), await restored.stat(f"{place}/{path}")
                assert (now.kind, now.mode, now.name) == (was.kind, was.mode, was.name)
                assert int(now.modified) == int(was.modified)
        await provider.discard(saved)
