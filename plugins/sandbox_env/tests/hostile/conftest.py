"""A service whose tenants are hostile, and what they attack it with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from orchard_env.service.seams import Tenant

from orchard_core import load_provider

from ..service.conftest import isolation as isolation
from ..service.running import GENEROUS_S, KnownKeys, Running, parts_of, running


@pytest.fixture(scope="module")
def shared(isolation: None) -> Iterator[Running]:
    """A service of two tenants, neither of whom administers it."""
    keys = KnownKeys(ours=Tenant(name="ours"), theirs=Tenant(name="theirs"))
    with running(lambda: parts_of(load_provider("local"), tenancy=keys), key="ours") as served:
        yield served


@pytest.fixture(scope="module")
def box(shared: Running) -> str:
    """The id of a sandbox of the first tenant."""
    return made(shared)


@pytest.fixture(scope="module")
def neighbour(shared: Running) -> str:
    """The id of one of the second."""
    return made(shared.as_caller("theirs"))


def made(service: Running, **spec: object) -> str:
    """A sandbox that is ready."""
    with service.client() as client:
        answer = client.post("/v2/sandboxes", params={"wait": GENEROUS_S}, json={"spec": spec})
        answer.raise_for_status()
        return str(answer.json()["id"])
