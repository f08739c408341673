"""Services that the adapters use, and the frameworks that they adapt."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchard_core import load_provider

from ..service.conftest import isolation as isolation
from ..service.running import Running, parts_of, running
from .environments import Framework, python_with


@pytest.fixture(scope="module")
def service(isolation: None) -> Iterator[Running]:
    """Over the local provider."""
    with running(lambda: parts_of(load_provider("local"))) as served:
        yield served


@pytest.fixture(scope="module")
def unisolated() -> Iterator[Running]:
    """Over the provider process, whose sandboxes see this machine's interpreters."""
    with running(lambda: parts_of(load_provider("process"))) as served:
        yield served


@pytest.fixture
def inspect(service: Running, tmp_path: Path) -> Framework:
    """Inspect."""
    return Framework(python=python_with("inspect"), service=service, scratch=tmp_path)


@pytest.fixture
def harbor(service: Running, tmp_path: Path) -> Framework:
    """Harbor."""
    return Framework(python=python_with("harbor"), service=service, scratch=tmp_path)


@pytest.fixture
def openenv(unisolated: Running, tmp_path: Path) -> Framework:
    """OpenEnv."""
    return Framework(python=python_with("openenv"), service=unisolated, scratch=tmp_path)
