"""Services that are watched, over real sandboxes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import httpx
import pytest
from orchard_env.service.defaults import NoAudit, OpenAdmission, OpenTenancy
from orchard_env.service.fleet import Fleet
from orchard_env.service.observe.observing import Observing, observing
from orchard_env.service.observe.settings import ObserveSettings
from orchard_env.service.observe.state import StateCollector
from orchard_env.service.seams import ALL_SCOPES, Audit, Scope, Tenancy, Tenant
from orchard_env.service.services import Services
from orchard_env.service.settings import ServiceSettings

from orchard_core import load_provider

from ..running import KnownKeys, Running, running

ADMIN, ALICE, METRICS = "admins-key", "alices-key", "key-for-metrics-alone"
Watched = Callable[..., AbstractContextManager[Running]]


def keys() -> KnownKeys:
    """An administrator, and a tenant."""
    return KnownKeys(
        **{
            ADMIN: Tenant(name="ops", key_id="a1", scopes=ALL_SCOPES | {Scope.ADMIN}),
            ALICE: Tenant(name="alice", key_id="b1"),
        }
    )


def parts(watch: Observing, tenancy: Tenancy | None = None, audit: Audit | None = None) -> Services:
    """A service that is watched."""
    settings, tenancy = ServiceSettings(drain_s=5.0), tenancy or OpenTenancy()
    fleet = Fleet(load_provider("process"), settings=settings, gone=tenancy.freed, meters=watch.metrics)
    watch.metrics.registry.register(StateCollector(watch.metrics, fleet, watch.loads, tuple))
    return Services(
        fleet=fleet,
        tenancy=tenancy,
        admission=OpenAdmission(),
        audit=audit or NoAudit(),
        meters=watch.metrics,
        settings=settings,
        watch=watch,
    )


@contextmanager
def served(
    *, settings: ObserveSettings | None = None, tenancy: Tenancy | None = None, audit: Audit | None = None,
    key: str | None = None,
) -> Iterator[Running]:  # fmt: skip
    """It, on a port."""
    with running(lambda: parts(observing(settings or ObserveSettings()), tenancy, audit), key=key) as service:
        yield service


@pytest.fixture(scope="module")
def open_service() -> Iterator[Running]:
    """Without keys: whoever calls is its administrator."""
    with served() as service:
        yield service


@pytest.fixture(scope="module")
def keyed_service() -> Iterator[Running]:
    """With an administrator's key and a tenant's."""
    with served(tenancy=keys()) as service:
        yield service


@pytest.fixture
def client(open_service: Running) -> Iterator[httpx.Client]:
    """Of the open one."""
    with open_service.client() as speaking:
        yield speaking


def make(client: httpx.Client, **asked: object) -> str:
    """A sandbox that is ready."""
    body = {"image": "host", "block_network": False, **asked}
    made = client.post("/sandboxes", json=body).raise_for_status().json()["sandbox_id"]
    client.get(f"/sandboxes/{made}/wait").raise_for_status()
    return str(made)
