"""Helm, and a cluster to install into."""

from __future__ import annotations

import pytest

from ..kubernetes.conftest import kubectl as kubectl
from ..kubernetes.conftest import namespace as namespace
from .helm import Helm, get_helm


@pytest.fixture(scope="session")
def helm() -> Helm:
    """The real one."""
    return get_helm()
