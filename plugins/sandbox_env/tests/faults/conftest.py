"""A real service over local boxes, and a sandbox of it, for all cases of a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .field import V1, local_service
from .orchestrators import Orchestrator

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Cases of a file share services in processes of their own: one worker runs them and starts each once."""
    for item in items:
        if item.path.parent == HERE and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(f"faults-{item.path.stem}"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The service's, and of what its clients may have as images."""
    return tmp_path_factory.mktemp("field")


@pytest.fixture(scope="module")
def service(folder: Path) -> Iterator[Orchestrator]:
    """One for all."""
    with local_service(folder) as serving:
        yield serving


@pytest.fixture(scope="module")
def box(service: Orchestrator) -> str:
    """A sandbox for all whose case leaves it as it was."""
    return V1(service.client).make()
