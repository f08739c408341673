"""The whole suite of sandbox providers over `remote`: through the service, and straight to the agents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import pytest
from orchard_env.remote.config import RemoteConfig
from orchard_env.remote.provider import RemoteProvider

from orchard_core import SandboxProvider, load_provider
from orchard_core.testing import SandboxSuite

from ..service.running import Running, parts_of, running
from .reachable import reachable_provider


@pytest.mark.usefixtures("isolation")
@pytest.mark.slow
class TestThroughTheService(SandboxSuite):
    """Every byte passes the service, which has local sandboxes."""

    service: ClassVar[Running]

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def _served(cls, isolation: None) -> Iterator[None]:
        with running(lambda: parts_of(load_provider("local"))) as served:
            cls.service = served
            yield

    async def make_provider(self) -> SandboxProvider:
        return RemoteProvider(RemoteConfig(url=self.service.url, direct="never"))


class TestStraightToTheAgents(SandboxSuite):
    """The service makes and ends the sandboxes, and sees nothing of what happens in them."""

    service: ClassVar[Running]

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def _served(cls) -> Iterator[None]:
        with running(lambda: parts_of(reachable_provider())) as served:
            cls.service = served
            yield

    async def make_provider(self) -> SandboxProvider:
        return RemoteProvider(RemoteConfig(url=self.service.url, direct="auto"))
