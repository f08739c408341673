"""A real service on a real port, over real sandboxes, for tests of everything that speaks to one."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import httpx
from orchard_env.service.app import Part, build_app
from orchard_env.service.defaults import NoAudit, NoMeters, OpenAdmission, OpenTenancy
from orchard_env.service.faults import KeyMissing, KeyRefused
from orchard_env.service.fleet import Fleet
from orchard_env.service.listener import Connection, listening, server
from orchard_env.service.seams import Admission, Audit, Meters, Stands, Tenancy, Tenant
from orchard_env.service.services import Services
from orchard_env.service.settings import ServiceSettings

from orchard_core import SandboxProvider, SandboxSpec

GENEROUS_S = 60.0

"""No test waits longer for a state; none depends on how soon it comes."""


def until(look: Callable[[], object], what: str) -> None:
    """Until it is so, or has not been for a generous time."""
    end = time.monotonic() + GENEROUS_S
    while not look():
        assert time.monotonic() < end, f"never: {what}"
        time.sleep(0.02)


@dataclass(frozen=True, kw_only=True)
class Running:
    """A service that answers."""

    url: str
    """Where."""
    services: Services
    """Its parts; they live in the service's own thread."""
    loop: asyncio.AbstractEventLoop
    """That thread's."""
    key: str | None = None
    """Sent by `client`."""

    def client(self, **options: Any) -> httpx.Client:
        """A blocking client. `key=` is another key than the service's own, None: none."""
        key = options.pop("key", self.key)
        headers = {} if key is None else {"X-API-Key": key}
        return httpx.Client(base_url=self.url, headers=headers, timeout=GENEROUS_S, **options)

    def as_caller(self, key: str | None) -> Running:
        """The same service, with another key."""
        return replace(self, key=key)


def parts_of(
    provider: SandboxProvider,
    *,
    tenancy: Tenancy | None = None,
    admission: Admission | None = None,
    audit: Audit | None = None,
    meters: Meters | None = None,
    **settings: Any,
) -> Services:
    """Everything a service needs, the simplest of each unless given."""
    chosen = ServiceSettings(**{"drain_s": 5.0, **settings})
    tenancy = tenancy or OpenTenancy()
    return Services(
        fleet=Fleet(provider, settings=chosen, gone=tenancy.freed),
        tenancy=tenancy,
        admission=admission or OpenAdmission(),
        audit=audit or NoAudit(),
        meters=meters or NoMeters(),
        settings=chosen,
    )


class KnownKeys:
    """Honours `Tenancy`: these keys are these tenants', without quotas."""

    def __init__(self, **tenants: Tenant) -> None:
        self._tenants = tenants

    async def identify(self, key: str | None) -> Tenant:
        """See Tenancy."""
        if key is None:
            raise KeyMissing("no key", hint="send X-API-Key")
        if key not in self._tenants:
            raise KeyRefused("a wrong key", hint="ask for a good one")
        return self._tenants[key]

    async def allow_create(self, tenant: Tenant, spec: SandboxSpec, standing: Stands) -> None:
        """See Tenancy."""

    async def freed(self, tenant: str, sandbox_id: str) -> None:
        """See Tenancy."""

    def bounds(self, tenant: str) -> Mapping[str, float]:
        """See Tenancy."""
        return {}


@contextmanager
def running(
    make: Callable[[], Services],
    *,
    key: str | None = None,
    parts: tuple[Part, ...] = (),
    connection: type[Connection] = Connection,
    **listener: Any,
) -> Iterator[Running]:
    """Serve until left, in a thread of its own. `make` is called there. Leaving drains the service.
    `listener`: more for its server."""
    started: Future[Running] = Future()
    stopping = threading.Event()
    thread = threading.Thread(
        target=lambda: asyncio.run(
            _serve(make, key, parts, {"connection": connection, **listener}, started, stopping)
        ),
        daemon=True,
    )
    thread.start()
    try:
        yield started.result(GENEROUS_S)
    finally:
        stopping.set()
        thread.join(GENEROUS_S)


async def _serve(
    make: Callable[[], Services],
    key: str | None,
    parts: tuple[Part, ...],
    listener: dict[str, Any],
    started: Future[Running],
    stopping: threading.Event,
) -> None:
    try:
        services = make()
        with listening("127.0.0.1", 0) as sock:
            app = build_app(services, parts=parts)
            settings = services.settings
            serving = server(app, drain_s=settings.drain_s, connections=settings.connections, **listener)
            task = asyncio.create_task(serving.serve(sockets=[sock]))
            while not serving.started and not task.done():
                await asyncio.sleep(0.01)
            if task.done():
                raise RuntimeError("the service did not start")
            url = f"http://127.0.0.1:{sock.getsockname()[1]}"
            started.set_result(Running(url=url, services=services, loop=asyncio.get_running_loop(), key=key))
            await asyncio.to_thread(stopping.wait)
            serving.should_exit = True
            await task
    except BaseException as error:
        if not started.done():
            started.set_exception(error)
        raise
