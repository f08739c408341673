"""The state of a service process, put together for people."""

from __future__ import annotations

import time
from collections.abc import Iterable

from orchard_core import __version__
from orchard_env.service.entry import Entry
from orchard_env.service.observe.accounts import Account
from orchard_env.service.observe.metrics import Metrics
from orchard_env.service.observe.observing import Observing
from orchard_env.service.observe.state import by_state
from orchard_env.service.services import Services
from orchard_env.types.overview import FailureRow, Overview, QueueRow, SandboxRow, TenantRow

_REASONS = 50
_HOUR_S = 3600.0


def overview(services: Services, watch: Observing, *, sandboxes: int) -> Overview:
    """As it is now, with the newest so many sandboxes."""
    tally, entries = watch.metrics.tally, services.fleet.known()
    newest = sorted(entries, key=lambda entry: entry.created, reverse=True)[:sandboxes]
    return Overview(
        at=time.time(),
        up_s=watch.metrics.up_s,
        version=__version__,
        provider=services.fleet.provider.name,
        draining=services.fleet.draining,
        conditions=tuple(services.conditions()),
        in_flight=max(0, watch.metrics.in_flight - 1),  # who asks is no load of the service's
        requests=tally.requests,
        created=tally.ready,
        create_s=tally.create_s,
        execs=tally.execs.total(),
        timed=tally.timed,
        overhead_s=tally.overhead_s,
        pool_hits=tally.pool["hit"],
        pool_misses=tally.pool["miss"],
        tenants=tuple(_tenants(services, watch.metrics)),
        queues=tuple(
            QueueRow(work=work.value, running=load.running, waiting=load.waiting, refused=load.refused)
            for work, load in watch.loads().items()
        ),
        failures=tuple(
            FailureRow(reason=reason, count=count) for reason, count in tally.failures.most_common(_REASONS)
        ),
        sandboxes=tuple(_row(watch, entry) for entry in newest),
        sandboxes_known=len(entries),
    )


def _row(watch: Observing, entry: Entry) -> SandboxRow:
    size, fault = watch.metrics.accounts.size(entry.spec), entry.fault
    return SandboxRow(
        id=entry.id,
        tenant=entry.tenant,
        status=entry.status.value,
        image=str(entry.spec.image),
        cpu=size.cpu,
        memory_gib=size.memory_gib,
        age_s=max(0.0, time.time() - entry.created),
        fault=None if fault is None else type(fault).__name__,
    )


def _tenants(services: Services, metrics: Metrics) -> Iterable[TenantRow]:
    states = by_state(metrics, services.fleet)
    accounts = metrics.accounts.settled()
    names = {*accounts, *metrics.tally.execs, *(tenant for tenant, _ in states)}
    rows = [
        _tenant(name, accounts.get(name) or Account(), metrics.tally.execs[name], states) for name in names
    ]
    return sorted(rows, key=lambda row: (-row.usd, row.tenant))


def _tenant(name: str, account: Account, execs: int, states: dict[tuple[str, str], int]) -> TenantRow:
    return TenantRow(
        tenant=name,
        pending=states.get((name, "pending"), 0),
        ready=states.get((name, "ready"), 0),
        failed=states.get((name, "failed"), 0),
        cpu=account.cpu,
        memory_gib=account.memory_gib,
        execs=execs,
        cpu_hours=account.cpu_seconds / _HOUR_S,
        used_cpu_hours=account.used_cpu_seconds / _HOUR_S,
        gib_hours=account.gib_hours,
        usd=account.usd,
    )
